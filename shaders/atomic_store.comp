#version 450
#extension GL_KHR_memory_scope_semantics : require
// Stores value + i to word i of binding 0 by OpAtomicStore.
layout(local_size_x = 64) in;
layout(std430, set = 0, binding = 0) buffer Target { uint words[]; } target;
layout(push_constant) uniform Push { uint value; } push;
void main()
{
    uint i = gl_GlobalInvocationID.x;
    if (i < target.words.length()) {
        atomicStore(target.words[i], push.value + i, gl_ScopeDevice, gl_StorageSemanticsNone, gl_SemanticsRelaxed);
    }
}
