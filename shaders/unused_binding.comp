#version 450
// Declares bindings 0, 1 and 2 but uses only 1; binding 2 is used by a function that nothing calls.
layout(local_size_x = 64) in;
layout(std430, set = 0, binding = 0) buffer Unused { uint words[]; } unused;
layout(std430, set = 0, binding = 1) buffer Target { uint words[]; } target;
layout(std430, set = 0, binding = 2) buffer Dead { uint words[]; } dead;
layout(push_constant) uniform Push { uint value; } push;
void never_called()
{
    dead.words[0] = 1;
}
void main()
{
    uint i = gl_GlobalInvocationID.x;
    if (i < target.words.length()) {
        target.words[i] = push.value + i;
    }
}
