#version 450
// Every invocation adds the push constant to word (i mod length) of binding 0 atomically.
layout(local_size_x = 64) in;
layout(std430, set = 0, binding = 0) buffer Target { uint words[]; } target;
layout(push_constant) uniform Push { uint value; } push;
void main()
{
    atomicAdd(target.words[gl_GlobalInvocationID.x % target.words.length()], push.value);
}
