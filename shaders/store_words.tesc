#version 450
// As plain.tesc; stores the pushed word in word gl_PrimitiveID of the storage buffer at binding 0.
layout(vertices = 1) out;
layout(std430, set = 0, binding = 0) writeonly buffer Target { uint words[]; } target;
layout(push_constant) uniform Push { uint value; } push;
void main()
{
    target.words[gl_PrimitiveID] = push.value;
    gl_out[gl_InvocationID].gl_Position = gl_in[gl_InvocationID].gl_Position;
    gl_TessLevelOuter[0] = gl_TessLevelOuter[1] = gl_TessLevelOuter[2] = 1.0;
    gl_TessLevelInner[0] = 1.0;
}
