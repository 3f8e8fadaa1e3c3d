#version 450
// As plain.tesc, with the vertex at the texel of a target of 16 by 16 that the low byte of word gl_PrimitiveID of the storage buffer at binding 0 counts.
layout(vertices = 1) out;
layout(std430, set = 0, binding = 0) readonly buffer Source { uint words[]; } source;
void main()
{
    int at = int(source.words[gl_PrimitiveID]) & 255;
    gl_out[gl_InvocationID].gl_Position = vec4((vec2(at & 15, at >> 4) + 0.5) / 8.0 - 1.0, 0.0, 1.0);
    gl_TessLevelOuter[0] = gl_TessLevelOuter[1] = gl_TessLevelOuter[2] = 1.0;
    gl_TessLevelInner[0] = 1.0;
}
