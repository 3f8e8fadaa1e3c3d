#version 450
// Early fragment tests; writes one colour and nothing else.
layout(early_fragment_tests) in;
layout(location = 0) out vec4 color;
void main()
{
    color = vec4(64.0, 128.0, 192.0, 255.0) / 255.0;
}
