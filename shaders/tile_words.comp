#version 450
// Fills a tile of binding 0, which has rows of `pitch` words: 8 x 8 words a workgroup, from word `first` on.
layout(local_size_x = 8, local_size_y = 8) in;
layout(std430, set = 0, binding = 0) buffer Target { uint words[]; } target;
layout(push_constant) uniform Push { uint first; uint pitch; uint value; } push;
void main()
{
    uvec2 at = gl_WorkGroupID.xy * gl_WorkGroupSize.xy + gl_LocalInvocationID.xy;
    target.words[push.first + at.y * push.pitch + at.x] = push.value + gl_LocalInvocationIndex;
}
