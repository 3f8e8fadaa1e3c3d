#version 450
// One point a vertex, at the texel whose column is the vertex index modulo 16, in row 8 of a target of 16 by 16.
void main()
{
    gl_Position = vec4((float(gl_VertexIndex & 15) + 0.5) / 8.0 - 1.0, 0.0625, 0.0, 1.0);
    gl_PointSize = 1.0;
}
