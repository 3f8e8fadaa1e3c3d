#version 450
// An array of four storage buffers at binding 0; the push constant chooses which one gets value + i.
// Needs the feature shaderStorageBufferArrayDynamicIndexing.
layout(local_size_x = 64) in;
layout(std430, set = 0, binding = 0) buffer Target { uint words[]; } targets[4];
layout(push_constant) uniform Push { uint element; uint value; } push;
void main()
{
    uint i = gl_GlobalInvocationID.x;
    if (i < targets[push.element].words.length()) {
        targets[push.element].words[i] = push.value + i;
    }
}
