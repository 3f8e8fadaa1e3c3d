#version 450
// Writes one VkDispatchIndirectCommand (x, y, z of the push constants) at the start of binding 0.
layout(local_size_x = 1) in;
layout(std430, set = 0, binding = 0) writeonly buffer Target { uint x; uint y; uint z; } target;
layout(push_constant) uniform Push { uint x; uint y; uint z; } push;
void main()
{
    target.x = push.x;
    target.y = push.y;
    target.z = push.z;
}
