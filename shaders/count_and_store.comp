#version 450
// Adds 1 to the counter of binding 0 atomically, and stores value + i to word first + i behind it.
layout(local_size_x = 16) in;
layout(std430, set = 0, binding = 0) buffer Target { uint counter; uint words[]; } target;
layout(push_constant) uniform Push { uint first; uint value; } push;
void main()
{
    uint i = gl_GlobalInvocationID.x;
    atomicAdd(target.counter, 1);
    target.words[push.first + i] = push.value + i;
}
