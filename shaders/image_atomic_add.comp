#version 450
// Every texel of the r32ui storage image at binding 0 gets the push constant added atomically. One invocation a texel.
layout(local_size_x = 64) in;
layout(set = 0, binding = 0, r32ui) uniform uimage2D target;
layout(push_constant) uniform Push { uint value; } push;
void main()
{
    int i = int(gl_GlobalInvocationID.x);
    ivec2 size = imageSize(target);
    if (i < size.x * size.y) {
        imageAtomicAdd(target, ivec2(i % size.x, i / size.x), push.value);
    }
}
