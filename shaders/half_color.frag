#version 450
// Writes half the colour of the texel of a source of half the size at binding 0 to location 0.
layout(set = 0, binding = 0) uniform sampler2D source;
layout(location = 0) out vec4 color;
void main() { color = texelFetch(source, ivec2(gl_FragCoord.xy) / 2, 0) * 0.5; }
