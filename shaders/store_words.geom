#version 450
// Points as they come; stores the pushed word in word gl_PrimitiveIDIn of the storage buffer at binding 0.
layout(points) in;
layout(points, max_vertices = 1) out;
layout(std430, set = 0, binding = 0) writeonly buffer Target { uint words[]; } target;
layout(push_constant) uniform Push { uint value; } push;
void main()
{
    target.words[gl_PrimitiveIDIn] = push.value;
    gl_Position = gl_in[0].gl_Position;
    EmitVertex();
}
