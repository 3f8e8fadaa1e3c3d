#version 450
// Reads input attachment 1 (set 0 binding 0) and writes it inverted to location 0; location 2 is declared, never written.
layout(input_attachment_index = 1, set = 0, binding = 0) uniform subpassInput source;
layout(location = 0) out vec4 color;
layout(location = 2) out vec4 untouched;
void main()
{
    color = vec4(1.0) - subpassLoad(source);
}
