#version 450
// Copies the first 64 bytes of a 128-byte block at binding 0 to its second 64 bytes, by constant indices.
layout(local_size_x = 1) in;
layout(std430, set = 0, binding = 0) buffer Target { uvec4 rows[8]; } target;
void main()
{
    target.rows[4] = target.rows[0];
    target.rows[5] = target.rows[1];
    target.rows[6] = target.rows[2];
    target.rows[7] = target.rows[3];
}
