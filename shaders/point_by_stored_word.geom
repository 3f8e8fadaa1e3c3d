#version 450
// Each point at the texel of a target of 16 by 16 that the low byte of word gl_PrimitiveIDIn of the storage buffer at binding 0 counts.
layout(points) in;
layout(points, max_vertices = 1) out;
layout(std430, set = 0, binding = 0) readonly buffer Source { uint words[]; } source;
void main()
{
    int at = int(source.words[gl_PrimitiveIDIn]) & 255;
    gl_Position = vec4((vec2(at & 15, at >> 4) + 0.5) / 8.0 - 1.0, 0.0, 1.0);
    EmitVertex();
}
