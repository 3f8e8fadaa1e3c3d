#version 450
// An array of four storage buffers at binding 0; word 0 of binding 1 chooses which one gets value + i.
// Needs the feature shaderStorageBufferArrayDynamicIndexing.
layout(local_size_x = 64) in;
layout(std430, set = 0, binding = 0) buffer Target { uint words[]; } targets[4];
layout(std430, set = 0, binding = 1) readonly buffer Choice { uint element; } choice;
layout(push_constant) uniform Push { uint value; } push;
void main()
{
    targets[choice.element].words[gl_GlobalInvocationID.x] = push.value + gl_GlobalInvocationID.x;
}
