#version 450
// Writes the push constant as the depth of each fragment; no colour.
layout(push_constant) uniform Push { float depth; } push;
void main()
{
    gl_FragDepth = push.depth;
}
