#version 450
// Fills a tile of 4 x 4 texels a workgroup of the rgba8 storage image at binding 0, from texel `at` on, with the bytes of value.
layout(local_size_x = 4, local_size_y = 4) in;
layout(set = 0, binding = 0, rgba8) uniform writeonly image2D target;
layout(push_constant) uniform Push { ivec2 at; uint value; } push;
void main()
{
    imageStore(target, push.at + ivec2(gl_GlobalInvocationID.xy), unpackUnorm4x8(push.value));
}
