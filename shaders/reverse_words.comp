#version 450
// Writes the words of binding 0 (readonly) to binding 1 (writeonly) in reverse order.
layout(local_size_x = 64) in;
layout(std430, set = 0, binding = 0) readonly buffer Source { uint words[]; } source;
layout(std430, set = 0, binding = 1) writeonly buffer Target { uint words[]; } target;
void main()
{
    uint i = gl_GlobalInvocationID.x;
    uint count = min(source.words.length(), target.words.length());
    if (i < count) {
        target.words[i] = source.words[count - 1 - i];
    }
}
