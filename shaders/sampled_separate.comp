#version 450
// As sample_2d, with a sampled image at binding 0, a sampler at binding 1 and the words at binding 2.
layout(local_size_x = 64) in;
layout(set = 0, binding = 0) uniform texture2D source;
layout(set = 0, binding = 1) uniform sampler filtering;
layout(std430, set = 0, binding = 2) writeonly buffer Target { uint words[]; } target;
void main()
{
    int i = int(gl_GlobalInvocationID.x);
    ivec2 size = textureSize(sampler2D(source, filtering), 0);
    if (i < min(size.x * size.y, target.words.length())) {
        vec2 centre = (vec2(i % size.x, i / size.x) + 0.5) / vec2(size);
        target.words[i] = packUnorm4x8(textureLod(sampler2D(source, filtering), centre, 0.0));
    }
}
