#version 450
// Stores one word of binding 0 and a color. The uniform block of binding 1 says which word.
layout(std430, set = 0, binding = 0) writeonly buffer Target { uint words[]; } target;
layout(std140, set = 0, binding = 1) uniform Place { uint word; } place;
layout(location = 0) out vec4 color;
void main()
{
    target.words[place.word] = 0x44;
    color = vec4(1.0);
}
