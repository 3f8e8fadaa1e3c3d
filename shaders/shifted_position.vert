#version 450
// Positions from attribute 0, two floats a vertex, moved by attribute 1, two floats.
layout(location = 0) in vec2 position;
layout(location = 1) in vec2 shift;
void main()
{
    gl_Position = vec4(position + shift, 0.5, 1.0);
}
