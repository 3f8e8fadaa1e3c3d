#version 450
// One point a vertex, at the texel whose column is attribute 0 modulo 16, in row 8 of a target of 16 by 16.
layout(location = 0) in uint word;
void main()
{
    gl_Position = vec4((float(word & 15u) + 0.5) / 8.0 - 1.0, 0.0625, 0.0, 1.0);
    gl_PointSize = 1.0;
}
