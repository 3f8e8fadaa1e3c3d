#version 450
// Word first + 2 i of binding 0 becomes value + i, for i below `count`: in turns, as many at once as there are invocations.
layout(local_size_x = 8) in;
layout(std430, set = 0, binding = 0) buffer Target { uint words[]; } target;
layout(push_constant) uniform Push { uint first; uint count; uint value; } push;
void main()
{
    uint step = gl_NumWorkGroups.x * gl_WorkGroupSize.x;
    for (uint i = gl_GlobalInvocationID.x; i < push.count; i += step) {
        target.words[push.first + 2 * i] = push.value + i;
    }
}
