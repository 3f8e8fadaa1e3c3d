#version 450
// Copies the rgba8 storage image at binding 0 to the one at binding 1, texel by texel.
layout(local_size_x = 64) in;
layout(set = 0, binding = 0, rgba8) uniform readonly image2D source;
layout(set = 0, binding = 1, rgba8) uniform writeonly image2D target;
void main()
{
    int i = int(gl_GlobalInvocationID.x);
    ivec2 size = imageSize(target);
    if (i < size.x * size.y) {
        ivec2 texel = ivec2(i % size.x, i / size.x);
        imageStore(target, texel, imageLoad(source, texel));
    }
}
