#version 450
#extension GL_KHR_memory_scope_semantics : require
// Loads word i of binding 0 by OpAtomicLoad and writes it to binding 1.
layout(local_size_x = 64) in;
layout(std430, set = 0, binding = 0) buffer Source { uint words[]; } source;
layout(std430, set = 0, binding = 1) writeonly buffer Target { uint words[]; } target;
void main()
{
    uint i = gl_GlobalInvocationID.x;
    if (i < min(source.words.length(), target.words.length())) {
        target.words[i] = atomicLoad(source.words[i], gl_ScopeDevice, gl_StorageSemanticsNone, gl_SemanticsRelaxed);
    }
}
