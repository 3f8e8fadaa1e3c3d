#version 450
// Word first + i of binding 0 becomes value + i, for the first `count` invocations.
layout(local_size_x = 64) in;
layout(std430, set = 0, binding = 0) buffer Target { uint words[]; } target;
layout(push_constant) uniform Push { uint first; uint count; uint value; } push;
void main()
{
    uint i = gl_GlobalInvocationID.x;
    if (i >= push.count) {
        return;
    }
    target.words[push.first + i] = push.value + i;
}
