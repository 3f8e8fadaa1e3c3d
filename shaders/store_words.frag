#version 450
// Stores the pushed word in one of the 64 words of the storage buffer at binding 0 for each fragment; no colour.
layout(std430, set = 0, binding = 0) writeonly buffer Target { uint words[]; } target;
layout(push_constant) uniform Push { uint value; } push;
void main()
{
    uvec2 at = uvec2(gl_FragCoord.xy);
    target.words[(at.y * 16 + at.x) & 63] = push.value;
}
