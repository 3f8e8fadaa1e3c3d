#version 450
// Fetches element i of the uniform texel buffer (an unsigned integer format) at binding 0 into word i of binding 1.
layout(local_size_x = 64) in;
layout(set = 0, binding = 0) uniform usamplerBuffer source;
layout(std430, set = 0, binding = 1) writeonly buffer Target { uint words[]; } target;
void main()
{
    int i = int(gl_GlobalInvocationID.x);
    if (i < min(textureSize(source), target.words.length())) {
        target.words[i] = texelFetch(source, i).x;
    }
}
