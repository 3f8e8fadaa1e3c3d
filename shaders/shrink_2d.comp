#version 450
// Each texel of the rgba8 storage image at binding 1 becomes the greatest of the four texels of binding 0 under it.
layout(local_size_x = 8, local_size_y = 8) in;
layout(set = 0, binding = 0, rgba8) uniform readonly image2D fine;
layout(set = 0, binding = 1, rgba8) uniform writeonly image2D coarse;
void main()
{
    ivec2 at = ivec2(gl_GlobalInvocationID.xy), size = imageSize(coarse);
    if (all(lessThan(at, size))) {
        vec4 most = max(max(imageLoad(fine, at * 2), imageLoad(fine, at * 2 + ivec2(1, 0))), max(imageLoad(fine, at * 2 + ivec2(0, 1)), imageLoad(fine, at * 2 + 1)));
        imageStore(coarse, at, most);
    }
}
