#version 450
// Writes the texel of the combined image sampler at binding 0 under this fragment to location 0.
layout(set = 0, binding = 0) uniform sampler2D source;
layout(location = 0) out vec4 color;
void main()
{
    color = texelFetch(source, ivec2(gl_FragCoord.xy), 0);
}
