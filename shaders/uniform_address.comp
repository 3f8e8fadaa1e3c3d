#version 450
#extension GL_EXT_buffer_reference : require
// Stores value + i to word i of the buffer whose device address is in the uniform block of binding 0.
layout(local_size_x = 64) in;
layout(std430, buffer_reference, buffer_reference_align = 4) buffer Words { uint words[]; };
layout(std140, set = 0, binding = 0) uniform Where { Words target; } where;
layout(push_constant) uniform Push { uint value; } push;
void main()
{
    uint i = gl_GlobalInvocationID.x;
    where.target.words[i] = push.value + i;
}
