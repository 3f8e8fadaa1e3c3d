#version 450
// An array of four storage buffers at binding 0. Two elements get value + i, each in words of its own: `first` or the one
// after it, by the remainder of a number of binding 1, and `second` or the one after it, by the low bit of another.
// Needs the feature shaderStorageBufferArrayDynamicIndexing.
layout(local_size_x = 64) in;
layout(std430, set = 0, binding = 0) buffer Target { uint words[]; } targets[4];
layout(std430, set = 0, binding = 1) readonly buffer Choice { float numbers[2]; } choice;
layout(push_constant) uniform Push { int first; int second; uint value; } push;
void main()
{
    uint i = gl_GlobalInvocationID.x;
    targets[push.first + int(choice.numbers[0]) % 2].words[i] = push.value + i;
    targets[push.second + (int(choice.numbers[1]) & 1)].words[64 + i] = push.value + i;
}
