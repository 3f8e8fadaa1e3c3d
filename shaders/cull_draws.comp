#version 450
// Appends a draw of three vertices to binding 1 for each second invocation, and counts them at the start of binding 0.
layout(local_size_x = 4) in;
layout(std430, set = 0, binding = 0) buffer Count { uint drawn; } count;
layout(std430, set = 0, binding = 1) writeonly buffer Draws { uvec4 draws[]; } list;
void main()
{
    if ((gl_LocalInvocationID.x & 1u) == 0u)
        list.draws[atomicAdd(count.drawn, 1u)] = uvec4(3, 1, 0, 0);
}
