#version 460
#extension GL_EXT_ray_query : require
// Writes of each word to binding 1 what a ray from (its index, 0.25, -1) along z hits in the structure of binding 0.
layout(local_size_x = 64) in;
layout(set = 0, binding = 0) uniform accelerationStructureEXT structure;
layout(std430, set = 0, binding = 1) writeonly buffer Target { uint words[]; } target;
void main()
{
    uint i = gl_GlobalInvocationID.x;
    rayQueryEXT query;
    vec3 origin = vec3(float(i), 0.25, -1.0);
    rayQueryInitializeEXT(query, structure, gl_RayFlagsOpaqueEXT, 0xFF, origin, 0.0, vec3(0.0, 0.0, 1.0), 10.0);
    while (rayQueryProceedEXT(query)) {
    }
    if (i < target.words.length()) {
        target.words[i] = rayQueryGetIntersectionTypeEXT(query, true);
    }
}
