#version 450
// Writes the rgba8 storage image at binding 0: texel i gets the four bytes of value + i * 0x01030507. One invocation a texel.
layout(local_size_x = 64) in;
layout(set = 0, binding = 0, rgba8) uniform writeonly image2D target;
layout(push_constant) uniform Push { uint value; } push;
void main()
{
    int i = int(gl_GlobalInvocationID.x);
    ivec2 size = imageSize(target);
    if (i < size.x * size.y) {
        imageStore(target, ivec2(i % size.x, i / size.x), unpackUnorm4x8(push.value + uint(i) * 0x01030507u));
    }
}
