#version 450
// Asks binding 0 only for its length; writes that to every word of binding 1.
layout(local_size_x = 64) in;
layout(std430, set = 0, binding = 0) buffer Source { uint words[]; } source;
layout(std430, set = 0, binding = 1) writeonly buffer Target { uint words[]; } target;
void main()
{
    uint i = gl_GlobalInvocationID.x;
    if (i < target.words.length()) {
        target.words[i] = source.words.length();
    }
}
