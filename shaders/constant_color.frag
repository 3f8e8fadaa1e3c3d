#version 450
// Writes the push constant colour to location 0.
layout(location = 0) out vec4 color;
layout(push_constant) uniform Push { vec4 color; } push;
void main()
{
    color = push.color;
}
