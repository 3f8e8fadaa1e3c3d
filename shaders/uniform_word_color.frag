#version 450
// The colour whose bytes are one of the 64 words of the uniform block at binding 0.
layout(std140, set = 0, binding = 0) uniform Source { uvec4 words[16]; } source;
layout(location = 0) out vec4 color;
void main()
{
    uvec2 at = uvec2(gl_FragCoord.xy);
    color = unpackUnorm4x8(source.words[(at.y & 3) * 4 + (at.x >> 2)][at.x & 3]);
}
