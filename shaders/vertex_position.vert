#version 450
// Positions from attribute 0, two floats a vertex.
layout(location = 0) in vec2 position;
void main()
{
    gl_Position = vec4(position, 0.5, 1.0);
}
