#version 450
// Uniform block of 64 words (256 bytes) at binding 0; word i of binding 1 becomes word (i mod 64) of the block, plus i.
layout(local_size_x = 64) in;
layout(std140, set = 0, binding = 0) uniform Source { uvec4 words[16]; } source;
layout(std430, set = 0, binding = 1) buffer Target { uint words[]; } target;
void main()
{
    uint i = gl_GlobalInvocationID.x;
    if (i < target.words.length()) {
        target.words[i] = source.words[(i / 4) & 15][i & 3] + i;
    }
}
