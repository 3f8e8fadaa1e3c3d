#version 450
// One point a vertex, at the texel of a target of 16 by 16 that texel gl_VertexIndex of the image sampled at binding 0 counts.
layout(set = 0, binding = 0) uniform sampler2D source;
void main()
{
    ivec2 size = textureSize(source, 0);
    vec2 centre = (vec2(gl_VertexIndex % size.x, gl_VertexIndex / size.x) + 0.5) / vec2(size);
    int at = int(packUnorm4x8(textureLod(source, centre, 0.0))) & 255;
    gl_Position = vec4((vec2(at & 15, at >> 4) + 0.5) / 8.0 - 1.0, 0.0, 1.0);
    gl_PointSize = 1.0;
}
