#version 450
// Fills 4 x 4 texels a workgroup of layer `layer` of the rgba8 storage image array at binding 0 with the bytes of value.
layout(local_size_x = 4, local_size_y = 4) in;
layout(set = 0, binding = 0, rgba8) uniform writeonly image2DArray target;
layout(push_constant) uniform Push { int layer; uint value; } push;
void main()
{
    imageStore(target, ivec3(gl_GlobalInvocationID.xy, push.layer), unpackUnorm4x8(push.value));
}
