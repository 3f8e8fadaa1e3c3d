#version 450
// Writes the colour of the uniform buffer at binding 0 to location 0.
layout(set = 0, binding = 0) uniform Color { vec4 color; } held;
layout(location = 0) out vec4 color;
void main()
{
    color = held.color;
}
