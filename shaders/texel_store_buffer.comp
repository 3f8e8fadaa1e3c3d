#version 450
// Writes value + i to element i of the r32ui storage texel buffer at binding 0.
layout(local_size_x = 64) in;
layout(set = 0, binding = 0, r32ui) uniform writeonly uimageBuffer target;
layout(push_constant) uniform Push { uint value; } push;
void main()
{
    int i = int(gl_GlobalInvocationID.x);
    if (i < imageSize(target)) {
        imageStore(target, i, uvec4(push.value + uint(i)));
    }
}
