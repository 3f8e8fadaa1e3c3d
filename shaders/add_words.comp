#version 450
// Adds the words of bindings 0 and 1 (both readonly) into binding 2 (writeonly).
layout(local_size_x = 64) in;
layout(std430, set = 0, binding = 0) readonly buffer Left { uint words[]; } left;
layout(std430, set = 0, binding = 1) readonly buffer Right { uint words[]; } right;
layout(std430, set = 0, binding = 2) writeonly buffer Target { uint words[]; } target;
void main()
{
    uint i = gl_GlobalInvocationID.x;
    if (i < target.words.length()) {
        target.words[i] = left.words[i] + right.words[i];
    }
}
