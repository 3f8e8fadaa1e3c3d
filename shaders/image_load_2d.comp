#version 450
// Loads each texel of the rgba8 storage image at binding 0 into word i of binding 1. One invocation a texel.
layout(local_size_x = 64) in;
layout(set = 0, binding = 0, rgba8) uniform readonly image2D source;
layout(std430, set = 0, binding = 1) writeonly buffer Target { uint words[]; } target;
void main()
{
    int i = int(gl_GlobalInvocationID.x);
    ivec2 size = imageSize(source);
    if (i < min(size.x * size.y, target.words.length())) {
        target.words[i] = packUnorm4x8(imageLoad(source, ivec2(i % size.x, i / size.x)));
    }
}
