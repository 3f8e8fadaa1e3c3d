#version 450
// One point a vertex, at the texel of a target of 16 by 16 that the low byte of the vertex index counts.
void main()
{
    int at = gl_VertexIndex & 255;
    gl_Position = vec4((vec2(at & 15, at >> 4) + 0.5) / 8.0 - 1.0, 0.0, 1.0);
    gl_PointSize = 1.0;
}
