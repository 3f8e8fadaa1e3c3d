#version 450
// As copy_words with no readonly or writeonly: binding 0 could be written, but is only loaded.
layout(local_size_x = 64) in;
layout(std430, set = 0, binding = 0) buffer Source { uint words[]; } source;
layout(std430, set = 0, binding = 1) buffer Target { uint words[]; } target;
void main()
{
    uint i = gl_GlobalInvocationID.x;
    if (i < min(source.words.length(), target.words.length())) {
        target.words[i] = source.words[i];
    }
}
