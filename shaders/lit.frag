#version 450
// Joins input attachments 0 to 2 (set 0 bindings 0 to 2: colour, direction, depth) in location 0.
layout(input_attachment_index = 0, set = 0, binding = 0) uniform subpassInput color_in;
layout(input_attachment_index = 1, set = 0, binding = 1) uniform subpassInput direction;
layout(input_attachment_index = 2, set = 0, binding = 2) uniform subpassInput depth;
layout(location = 0) out vec4 color;
void main()
{
    color = vec4(subpassLoad(color_in).xy * 4.0, subpassLoad(direction).z, subpassLoad(depth).x);
}
