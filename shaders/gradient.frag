#version 450
// Writes to location 0 red that counts columns, green that counts rows (in steps of 1/255), blue 64/255.
layout(location = 0) out vec4 color;
void main()
{
    color = vec4(floor(gl_FragCoord.xy), 64.0, 255.0) / 255.0;
}
