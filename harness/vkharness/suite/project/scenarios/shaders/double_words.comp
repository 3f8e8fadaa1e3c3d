#version 450
// Doubles the words of binding 0 (readonly) into binding 1 (writeonly).
layout(local_size_x = 64) in;
layout(std430, set = 0, binding = 0) readonly buffer Source { uint words[]; } source;
layout(std430, set = 0, binding = 1) writeonly buffer Target { uint words[]; } target;
void main()
{
    uint i = gl_GlobalInvocationID.x;
    if (i < min(source.words.length(), target.words.length())) {
        target.words[i] = 2 * source.words[i];
    }
}
