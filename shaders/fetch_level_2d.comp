#version 450
// Fetches 4 x 4 texels of mip level `level` of the image at binding 0: word i of binding 1 becomes the bytes of texel i.
layout(local_size_x = 4, local_size_y = 4) in;
layout(set = 0, binding = 0) uniform sampler2D source;
layout(std430, set = 0, binding = 1) buffer Target { uint words[]; } target;
layout(push_constant) uniform Push { int level; } push;
void main()
{
    vec4 texel = texelFetch(source, ivec2(gl_LocalInvocationID.xy), push.level);
    target.words[gl_LocalInvocationIndex] = packUnorm4x8(texel);
}
