#version 450
// Exchanges word i of binding 0 with the push constant atomically and keeps the old word in binding 1.
layout(local_size_x = 64) in;
layout(std430, set = 0, binding = 0) buffer Target { uint words[]; } target;
layout(std430, set = 0, binding = 1) writeonly buffer Old { uint words[]; } old;
layout(push_constant) uniform Push { uint value; } push;
void main()
{
    uint i = gl_GlobalInvocationID.x;
    if (i < target.words.length()) {
        old.words[i] = atomicExchange(target.words[i], push.value);
    }
}
