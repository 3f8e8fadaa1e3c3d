#version 450
// Stores the pushed word in word gl_VertexIndex of the storage buffer at binding 0. One point a vertex, in the first texel.
layout(std430, set = 0, binding = 0) writeonly buffer Target { uint words[]; } target;
layout(push_constant) uniform Push { uint value; } push;
void main()
{
    target.words[gl_VertexIndex] = push.value;
    gl_Position = vec4(-0.9375, -0.9375, 0.0, 1.0);
    gl_PointSize = 1.0;
}
