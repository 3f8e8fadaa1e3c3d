#version 450
// Early fragment tests; counts fragments in word 0 of binding 0; writes locations 1 and 3.
layout(early_fragment_tests) in;
layout(std430, set = 0, binding = 0) buffer Counter { uint count; } counter;
layout(location = 1) out vec4 first;
layout(location = 3) out uvec2 second;
void main()
{
    atomicAdd(counter.count, 1u);
    first = vec4(1.0);
    second.y = 7u;
}
