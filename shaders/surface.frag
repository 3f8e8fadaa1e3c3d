#version 450
// Writes a gradient of columns and rows to location 0, and its complement to location 1.
layout(location = 0) out vec4 color;
layout(location = 1) out vec4 direction;
void main()
{
    color = vec4(floor(gl_FragCoord.xy), 64.0, 255.0) / 255.0;
    direction = vec4(1.0) - color;
}
