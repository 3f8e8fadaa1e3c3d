#version 450
// An array of four storage buffers at binding 0, of which only element 2 is used: word i becomes value + i.
layout(local_size_x = 64) in;
layout(std430, set = 0, binding = 0) buffer Target { uint words[]; } targets[4];
layout(push_constant) uniform Push { uint value; } push;
void main()
{
    uint i = gl_GlobalInvocationID.x;
    if (i < targets[2].words.length()) {
        targets[2].words[i] = push.value + i;
    }
}
