#version 450
// An array of four storage buffers at binding 0: the words of element 0 are copied to element 3.
layout(local_size_x = 64) in;
layout(std430, set = 0, binding = 0) buffer Words { uint words[]; } buffers[4];
void main()
{
    uint i = gl_GlobalInvocationID.x;
    if (i < min(buffers[0].words.length(), buffers[3].words.length())) {
        buffers[3].words[i] = buffers[0].words[i];
    }
}
