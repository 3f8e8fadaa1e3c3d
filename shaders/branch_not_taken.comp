#version 450
// Static use is decided without looking at branches: binding 0 is written only when the push constant is 1.
layout(local_size_x = 64) in;
layout(std430, set = 0, binding = 0) buffer Target { uint words[]; } target;
layout(push_constant) uniform Push { uint enabled; uint value; } push;
void main()
{
    uint i = gl_GlobalInvocationID.x;
    if (push.enabled == 1u && i < target.words.length()) {
        target.words[i] = push.value + i;
    }
}
