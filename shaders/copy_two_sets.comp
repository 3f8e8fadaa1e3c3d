#version 450
// Copies set 0 binding 0 (readonly) to set 1 binding 0 (writeonly), word by word.
layout(local_size_x = 64) in;
layout(std430, set = 0, binding = 0) readonly buffer Source { uint words[]; } source;
layout(std430, set = 1, binding = 0) writeonly buffer Target { uint words[]; } target;
void main()
{
    uint i = gl_GlobalInvocationID.x;
    if (i < min(source.words.length(), target.words.length())) {
        target.words[i] = source.words[i];
    }
}
