#version 450
// The colour whose bytes are one of the 64 words of the storage buffer at binding 0.
layout(std430, set = 0, binding = 0) readonly buffer Source { uint words[]; } source;
layout(location = 0) out vec4 color;
void main()
{
    uvec2 at = uvec2(gl_FragCoord.xy);
    color = unpackUnorm4x8(source.words[(at.y * 16 + at.x) & 63]);
}
