#version 450
#extension GL_EXT_buffer_reference : require
// Copies word i of the buffer whose device address is `source` to word i behind `target`, for the first `count` words.
layout(local_size_x = 64) in;
layout(std430, buffer_reference, buffer_reference_align = 4) buffer Words { uint words[]; };
layout(push_constant) uniform Push { Words source; Words target; uint count; } push;
void main()
{
    uint i = gl_GlobalInvocationID.x;
    if (i < push.count) {
        push.target.words[i] = push.source.words[i];
    }
}
