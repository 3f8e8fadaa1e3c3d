#version 450
// Writes value + i to word i of the whole bound range of set 0 binding 0.
layout(local_size_x = 64) in;
layout(std430, set = 0, binding = 0) buffer Target { uint words[]; } target;
layout(push_constant) uniform Push { uint value; } push;
void main()
{
    uint i = gl_GlobalInvocationID.x;
    if (i < target.words.length()) {
        target.words[i] = push.value + i;
    }
}
