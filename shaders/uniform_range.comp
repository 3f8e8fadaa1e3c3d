#version 450
// Stores value to `count` words of binding 0 from word `first` on. The uniform block of binding 1 has both numbers.
layout(local_size_x = 64) in;
layout(std430, set = 0, binding = 0) writeonly buffer Target { uint words[]; } target;
layout(std140, set = 0, binding = 1) uniform Range { uint first; uint count; } range;
layout(push_constant) uniform Push { uint value; } push;
void main()
{
    uint i = gl_GlobalInvocationID.x;
    if (i < range.count) {
        target.words[range.first + i] = push.value + i;
    }
}
