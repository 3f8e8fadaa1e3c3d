#version 450
// Captures its vertex index with a pushed word above it to transform feedback buffer 0, a word a vertex.
layout(xfb_buffer = 0, xfb_stride = 4, xfb_offset = 0, location = 0) out uint captured;
layout(push_constant) uniform Push { uint value; } push;
void main()
{
    captured = push.value + gl_VertexIndex;
    gl_Position = vec4(0.0, 0.0, 0.0, 1.0);
}
