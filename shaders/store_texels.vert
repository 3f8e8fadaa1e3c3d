#version 450
// Stores the bytes of the pushed word in texel gl_VertexIndex of the rgba8 storage image at binding 0. One point a vertex, in the first texel.
layout(set = 0, binding = 0, rgba8) uniform writeonly image2D target;
layout(push_constant) uniform Push { uint value; } push;
void main()
{
    int width = imageSize(target).x;
    imageStore(target, ivec2(gl_VertexIndex % width, gl_VertexIndex / width), unpackUnorm4x8(push.value));
    gl_Position = vec4(-0.9375, -0.9375, 0.0, 1.0);
    gl_PointSize = 1.0;
}
