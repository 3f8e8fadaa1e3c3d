#version 450
// One point a vertex, at the texel of a target of 16 by 16 that texel gl_VertexIndex of the rgba8 storage image at binding 0 counts.
layout(set = 0, binding = 0, rgba8) uniform readonly image2D source;
void main()
{
    int width = imageSize(source).x;
    uint word = packUnorm4x8(imageLoad(source, ivec2(gl_VertexIndex % width, gl_VertexIndex / width)));
    int at = int(word) & 255;
    gl_Position = vec4((vec2(at & 15, at >> 4) + 0.5) / 8.0 - 1.0, 0.0, 1.0);
    gl_PointSize = 1.0;
}
