#version 450
// Stores the bytes of the pushed word in the fragment's texel of the rgba8 storage image at binding 0; no colour.
layout(set = 0, binding = 0, rgba8) uniform writeonly image2D target;
layout(push_constant) uniform Push { uint value; } push;
void main()
{
    imageStore(target, ivec2(gl_FragCoord.xy), unpackUnorm4x8(push.value));
}
