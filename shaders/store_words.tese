#version 450
// As plain.tese; stores the pushed word in word gl_PrimitiveID of the storage buffer at binding 0.
layout(triangles, point_mode) in;
layout(std430, set = 0, binding = 0) writeonly buffer Target { uint words[]; } target;
layout(push_constant) uniform Push { uint value; } push;
void main()
{
    target.words[gl_PrimitiveID] = push.value;
    gl_Position = gl_in[0].gl_Position;
}
