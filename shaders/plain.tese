#version 450
// Points where the first vertex of the patch is.
layout(triangles, point_mode) in;
void main()
{
    gl_Position = gl_in[0].gl_Position;
}
