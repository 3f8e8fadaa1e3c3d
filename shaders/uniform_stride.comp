#version 450
// As stride_words, word after word; the first word and the count are those of the uniform block at binding 1.
layout(local_size_x = 8) in;
layout(std430, set = 0, binding = 0) buffer Target { uint words[]; } target;
layout(std140, set = 0, binding = 1) uniform Numbers { uint first; uint count; } numbers;
layout(push_constant) uniform Push { uint value; } push;
void main()
{
    uint step = gl_NumWorkGroups.x * gl_WorkGroupSize.x;
    for (uint i = gl_GlobalInvocationID.x; i < numbers.count; i += step) {
        target.words[numbers.first + i] = push.value + i;
    }
}
