#version 450
// Loads element i of the r32ui storage texel buffer at binding 0 into word i of binding 1.
layout(local_size_x = 64) in;
layout(set = 0, binding = 0, r32ui) uniform readonly uimageBuffer source;
layout(std430, set = 0, binding = 1) writeonly buffer Target { uint words[]; } target;
void main()
{
    int i = int(gl_GlobalInvocationID.x);
    if (i < min(imageSize(source), target.words.length())) {
        target.words[i] = imageLoad(source, i).x;
    }
}
