#version 450
// Writes only the first 64 bytes of a 128-byte block at binding 0, by constant indices. One invocation is enough.
layout(local_size_x = 1) in;
layout(std430, set = 0, binding = 0) buffer Target { uvec4 rows[8]; } target;
layout(push_constant) uniform Push { uint value; } push;
void main()
{
    target.rows[0] = uvec4(0, 1, 2, 3) + push.value;
    target.rows[1] = uvec4(4, 5, 6, 7) + push.value;
    target.rows[2] = uvec4(8, 9, 10, 11) + push.value;
    target.rows[3] = uvec4(12, 13, 14, 15) + push.value;
}
