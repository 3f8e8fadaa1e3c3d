#version 450
// Binding 0 is written only when word 0 of binding 1 is 1: no recorder knows whether it is.
layout(local_size_x = 64) in;
layout(std430, set = 0, binding = 0) buffer Target { uint words[]; } target;
layout(std430, set = 0, binding = 1) readonly buffer Switch { uint enabled; } on;
layout(push_constant) uniform Push { uint value; } push;
void main()
{
    uint i = gl_GlobalInvocationID.x;
    if (on.enabled == 1 && i < target.words.length()) {
        target.words[i] = push.value + i;
    }
}
