#version 450
// Asks the rgba8 storage image at binding 0 and the combined image sampler at binding 1 only for their sizes.
// Word i of binding 2 becomes one of storage width, storage height, sampled width, sampled height (i mod 4).
layout(local_size_x = 64) in;
layout(set = 0, binding = 0, rgba8) uniform image2D stored;
layout(set = 0, binding = 1) uniform sampler2D sampled;
layout(std430, set = 0, binding = 2) writeonly buffer Target { uint words[]; } target;
void main()
{
    uint i = gl_GlobalInvocationID.x;
    if (i < target.words.length()) {
        target.words[i] = uvec4(imageSize(stored), textureSize(sampled, 0))[i & 3];
    }
}
