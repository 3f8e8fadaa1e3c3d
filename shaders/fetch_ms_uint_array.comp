#version 450
// Fetches every sample of the multisample image at binding 0, layer `layer` of the array, into binding 1: four words each, r, g, b, a.
// The place of a sample is (y * width + x) * samples + s. One invocation a sample.
layout(local_size_x = 64) in;
layout(set = 0, binding = 0) uniform usampler2DMSArray source;
layout(std430, set = 0, binding = 1) writeonly buffer Target { uvec4 texels[]; } target;
layout(push_constant) uniform Push { uint width; uint height; uint samples; uint layer; } push;
void main()
{
    uint i = gl_GlobalInvocationID.x;
    if (i < min(push.width * push.height * push.samples, target.texels.length())) {
        uint place = i / push.samples;
        ivec2 texel = ivec2(place % push.width, place / push.width);
        target.texels[i] = texelFetch(source, ivec3(texel, int(push.layer)), int(i % push.samples));
    }
}
