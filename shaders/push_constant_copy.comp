#version 450
// Word i of binding 0 becomes word (i mod 4) of the 16 bytes of push constants.
layout(local_size_x = 64) in;
layout(std430, set = 0, binding = 0) writeonly buffer Target { uint words[]; } target;
layout(push_constant) uniform Push { uvec4 words; } push;
void main()
{
    uint i = gl_GlobalInvocationID.x;
    if (i < target.words.length()) {
        target.words[i] = push.words[i & 3];
    }
}
