#version 450
// Writes input attachment 0 (set 0 binding 0) inverted to location 0.
layout(input_attachment_index = 0, set = 0, binding = 0) uniform subpassInput source;
layout(location = 0) out vec4 color;
void main()
{
    color = vec4(1.0) - subpassLoad(source);
}
