#version 450
// Inverts each texel of the rgba8 storage image at binding 0 in place: a load and a store of one image.
layout(local_size_x = 64) in;
layout(set = 0, binding = 0, rgba8) uniform image2D target;
void main()
{
    int i = int(gl_GlobalInvocationID.x);
    ivec2 size = imageSize(target);
    if (i < size.x * size.y) {
        ivec2 texel = ivec2(i % size.x, i / size.x);
        imageStore(target, texel, vec4(1.0) - imageLoad(target, texel));
    }
}
