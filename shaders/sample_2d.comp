#version 450
// Samples the combined image sampler at binding 0 at each texel centre of its base level into word i of binding 1.
layout(local_size_x = 64) in;
layout(set = 0, binding = 0) uniform sampler2D source;
layout(std430, set = 0, binding = 1) writeonly buffer Target { uint words[]; } target;
void main()
{
    int i = int(gl_GlobalInvocationID.x);
    ivec2 size = textureSize(source, 0);
    if (i < min(size.x * size.y, target.words.length())) {
        vec2 centre = (vec2(i % size.x, i / size.x) + 0.5) / vec2(size);
        target.words[i] = packUnorm4x8(textureLod(source, centre, 0.0));
    }
}
