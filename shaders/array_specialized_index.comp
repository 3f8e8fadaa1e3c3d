#version 450
// As array_constant_index, with the element chosen by specialization constant 0 (default 1).
layout(local_size_x = 64) in;
layout(constant_id = 0) const uint ELEMENT = 1;
layout(std430, set = 0, binding = 0) buffer Target { uint words[]; } targets[4];
layout(push_constant) uniform Push { uint value; } push;
void main()
{
    uint i = gl_GlobalInvocationID.x;
    if (i < targets[ELEMENT].words.length()) {
        targets[ELEMENT].words[i] = push.value + i;
    }
}
