#version 450
// Positions from the storage buffer at binding 0, two floats a vertex.
layout(std430, set = 0, binding = 0) readonly buffer Positions { vec2 at[]; } positions;
void main()
{
    gl_Position = vec4(positions.at[gl_VertexIndex], 0.5, 1.0);
}
