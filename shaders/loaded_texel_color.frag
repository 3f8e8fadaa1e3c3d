#version 450
// The colour of the fragment's texel of the rgba8 storage image at binding 0.
layout(set = 0, binding = 0, rgba8) uniform readonly image2D source;
layout(location = 0) out vec4 color;
void main()
{
    color = imageLoad(source, ivec2(gl_FragCoord.xy));
}
