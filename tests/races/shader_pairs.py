"""Pairs of compute shaders: one whose invocations are ordered, and the same with a mistake."""

from __future__ import annotations

from typing import NamedTuple

HEAD = """#version 450
{extensions}
layout(local_size_x = 64) in;
layout(std430, set = 0, binding = 0) buffer First {{ uint a[]; }};
layout(std430, set = 0, binding = 1) buffer Second {{ uint b[]; }};
shared uint s[256];
#define l gl_LocalInvocationIndex
#define g gl_GlobalInvocationID.x
#define n gl_WorkGroupID.x
void main() {{
{body}
}}
"""
WIDTH = "#define W {}u\n#define R {}u\n"
"""W invocations are a work group of the pairs, R rows of R."""
SCOPES = "#extension GL_KHR_memory_scope_semantics : require\n"
MODEL = f"#pragma use_vulkan_memory_model\n{SCOPES}"
FENCED = "memoryBarrierBuffer(); barrier();"
SUM = "if (l == 0u) b[n] = s[0];"


class Pair(NamedTuple):
    """A shader with one place `@` in it: what belongs there, what somebody wrote, and the races of that."""

    body: str
    right: str
    wrong: str
    why: str
    """A part of the reason."""
    extensions: str = ""

    def bodies(self, name: str) -> dict[str, str]:
        """The bodies of both: NAME_True and NAME_False."""
        return {f"{name}_{each}": self.body.replace("@", (self.wrong, self.right)[each]) for each in (True, False)}


NEAR, FAR, HALF = "no control barrier", "different work groups", "one of them alone"
BUFFERS, SCOPE, PRIVATE = "does not order buffers", "not each in the other's scope", "private"
COHERENT = "layout(std430, set = 0, binding = 0) {} buffer Third {{ uint c[]; }};\n"
AGAIN = COHERENT.format("devicecoherent").replace("c[]", "d[]").replace("Third", "Fourth")
AVAILABLE = "not made available"
MAKE, SEEN = " | gl_SemanticsMakeAvailable", " | gl_SemanticsMakeVisible"
STORED_SO = "atomicStore(b[9], 1u, gl_ScopeDevice, gl_StorageSemanticsBuffer, gl_SemanticsRelease@);"
LOADED_SO = f"atomicLoad(b[9], gl_ScopeDevice, gl_StorageSemanticsBuffer, gl_SemanticsAcquire{SEEN}) == 1u"
STORED, LOADED = STORED_SO.replace("@", ""), LOADED_SO.replace(SEEN, "")
PAIRS = {
    "neighbour": Pair("s[l] = g; @ b[g] = s[l ^ 1u];", "barrier();", "", NEAR),
    "neighbour_after_a_fence": Pair("s[l] = g; memoryBarrierShared(); @ b[g] = s[l ^ 1u];", "barrier();", "", NEAR),
    "reduction": Pair(
        f"s[l] = g; barrier(); for (uint k = W / 2u; k > 0u; k >>= 1) {{ if (l < k) s[l] += s[l + k]; @ }} {SUM}",
        "barrier();",
        "",
        NEAR,
    ),
    "reduction_of_a_warp": Pair(
        f"s[l] = g; barrier(); for (uint k = W / 2u; k > 0u; k >>= 1) {{ if (l < k) s[l] += s[l + k]; @ }} {SUM}",
        "barrier();",
        "if (k > W / 4u) memoryBarrierShared();",
        NEAR,
    ),
    "prefix_sum": Pair(
        "s[l] = g; barrier(); for (uint k = 1u; k < W; k <<= 1) { uint v = l >= k ? s[l - k] : 0u; @ s[l] += v;"
        " barrier(); } b[g] = s[l];",
        "barrier();",
        "",
        NEAR,
    ),
    "prefix_sum_in_two_halves": Pair(
        "uint at = 0u; s[l] = g; barrier(); for (uint k = 1u; k < W; k <<= 1) { uint o = at; at = @;"
        " s[at + l] = s[o + l] + (l >= k ? s[o + l - k] : 0u); barrier(); } b[g] = s[at + l];",
        "W - at",
        "at",
        NEAR,
    ),
    "transpose": Pair("s[l] = g; @ b[g] = s[l % R * R + l / R];", "barrier();", "", NEAR),
    "histogram_cleared": Pair(
        "s[l] = 0u; @ atomicAdd(s[g * 7u & W - 1u], 1u); barrier(); b[g] = s[l];", "barrier();", "", HALF
    ),
    "histogram_counted": Pair(
        "s[l] = 0u; barrier(); @; barrier(); b[g] = s[l];", "atomicAdd(s[l / 2u], 1u)", "s[l / 2u]++", NEAR
    ),
    "filter": Pair("@[g] = a[g] + a[(g + 1u) % (2u * W)];", "b", "a", NEAR),
    "filter_over_groups": Pair("@[g] = a[g] + a[g ^ W];", "b", "a", FAR),
    "other_group": Pair("b[g] = g; a[g] = b[@];", "g", "g ^ W", FAR),
    "buffer_in_a_group": Pair("b[g] = g; @ a[g] = b[g ^ 1u];", FENCED, "barrier();", BUFFERS),
    "buffer_without_any": Pair("b[g] = g; @ a[g] = b[g ^ 1u];", FENCED, "memoryBarrierBuffer();", NEAR),
    "counter": Pair("@;", "atomicAdd(a[0], 1u)", "a[0]++", NEAR),
    "append": Pair("uint i = @; b[i & 127u] = g;", "atomicAdd(a[0], 1u)", "a[0]++", NEAR),
    "message": Pair(
        "if (g == 0u) { b[1] = 7u; @ atomicExchange(a[0], 1u); }"
        " if (g == W && atomicAdd(a[0], 0u) == 1u) { memoryBarrierBuffer(); b[2] = b[1]; }",
        "memoryBarrierBuffer();",
        "",
        FAR,
    ),
    "message_received": Pair(
        "if (g == 0u) { b[1] = 7u; memoryBarrierBuffer(); atomicExchange(a[0], 1u); }"
        " if (g == W && atomicAdd(a[0], 0u) == 1u) { @ b[2] = b[1]; }",
        "memoryBarrierBuffer();",
        "",
        FAR,
    ),
    "message_of_the_wrong_class": Pair(
        "if (g == 0u) { b[1] = 7u; @ atomicExchange(a[0], 1u); }"
        " if (g == W && atomicAdd(a[0], 0u) == 1u) { memoryBarrierBuffer(); b[2] = b[1]; }",
        "memoryBarrier();",
        "memoryBarrierShared();",
        FAR,
    ),
    "flag": Pair("if (g == 0u) @; if (g == W) b[0] = atomicAdd(a[0], 0u);", "atomicOr(a[0], 1u)", "a[0] = 1u", HALF),
    "same_value": Pair("if (@) a[0] = 5u;", "g == 0u", "true", NEAR),
    "read_then_written": Pair(
        "s[l] = g; barrier(); uint v = s[l ^ 1u]; @ s[l] = v; barrier(); b[g] = s[l];", "barrier();", "", NEAR
    ),
    "broadcast": Pair("if (l == 0u) s[0] = n; @ b[g] = s[0];", "barrier();", "", NEAR),
    "bitonic_sort": Pair(
        "s[l] = g * 37u & W - 1u; barrier(); for (uint k = 2u; k <= W; k <<= 1) for (uint j = k >> 1; j > 0u; j >>= 1)"
        " { uint o = l ^ j; if (o > l) { uint x = s[l], y = s[o]; if ((x > y) == ((l & k) == 0u)) { s[l] = y; s[o] = x;"
        " } } @ } b[g] = s[l];",
        "barrier();",
        "",
        NEAR,
    ),
    "tiles": Pair(
        "uint sum = 0u; for (uint t = 0u; t < 2u; t++) { s[l] = t + g; barrier(); sum += s[W - 1u - l]; @ }"
        " b[g] = sum;",
        "barrier();",
        "",
        NEAR,
    ),
    "halo": Pair(
        "s[l + 1u] = g; if (l == 0u) s[0] = 0u; if (l == W - 1u) s[W + 1u] = 0u; @ b[g] = s[l] + s[l + 2u];",
        "barrier();",
        "",
        NEAR,
    ),
    "work_queue": Pair(
        "for (uint i = @ - 0x11111111u; i < W; i = @ - 0x11111111u) b[i] = g;", "atomicAdd(a[1], 1u)", "a[1]++", NEAR
    ),
    "look_back": Pair(
        "if (l == 0u) { uint sum = n + 1u; if (n > 0u && atomicAdd(a[n - 1u], 0u) == 1u) { memoryBarrierBuffer();"
        " sum += b[n - 1u]; } b[n] = sum; @ atomicExchange(a[n], 1u); }",
        "memoryBarrierBuffer();",
        "",
        FAR,
    ),
    "last_group_sums": Pair(
        "if (l == 0u) { b[n] = n; @ if (atomicAdd(a[1], 1u) == 0x11111112u) { memoryBarrierBuffer();"
        " a[9] = b[0] + b[1]; } }",
        "memoryBarrierBuffer();",
        "",
        FAR,
    ),
    "lock": Pair(
        "while (atomicCompSwap(a[3], 0x11111111u, 1u) != 0x11111111u) ; @ a[4] += 1u; memoryBarrierBuffer();"
        " atomicExchange(a[3], 0x11111111u);",
        "memoryBarrierBuffer();",
        "",
        NEAR,
    ),
    "stride": Pair("for (uint i = l; i < 2u * W; i += @) b[n * 2u * W + i] = i;", "W", "W / 2u", NEAR),
    "one_beside": Pair("b[g] = @[g + 1u];", "a", "b", NEAR),
    "divergent": Pair("if ((g & 3u) == 0u) s[@] = g; barrier(); b[g] = g;", "l", "0", NEAR),
    "scope": Pair(
        "atomicAdd(a[0], 1u, @, gl_StorageSemanticsBuffer, gl_SemanticsRelaxed);",
        "gl_ScopeDevice",
        "gl_ScopeWorkgroup",
        SCOPE,
        SCOPES,
    ),
    "release": Pair(
        "if (g == 0u) { b[1] = 7u; atomicStore(a[0], 1u, gl_ScopeDevice, gl_StorageSemanticsBuffer, @); }"
        " if (g == W && atomicLoad(a[0], gl_ScopeDevice, gl_StorageSemanticsBuffer, gl_SemanticsAcquire) == 1u)"
        " b[2] = b[1];",
        "gl_SemanticsRelease",
        "gl_SemanticsRelaxed",
        FAR,
        SCOPES,
    ),
    "acquire": Pair(
        "if (g == 0u) { b[1] = 7u; atomicStore(a[0], 1u, gl_ScopeDevice, gl_StorageSemanticsBuffer,"
        " gl_SemanticsRelease); } if (g == W && atomicLoad(a[0], gl_ScopeDevice, gl_StorageSemanticsBuffer, @) == 1u)"
        " b[2] = b[1];",
        "gl_SemanticsAcquire",
        "gl_SemanticsRelaxed",
        FAR,
        SCOPES,
    ),
    "coherent_of_the_device": Pair(
        "if (g == 0u) { c[0] = 7u; atomicStore(b[9], 1u, @, gl_StorageSemanticsBuffer, gl_SemanticsRelease); }"
        f" if (g == W && {LOADED}) b[0] = c[0];",
        "gl_ScopeDevice",
        "gl_ScopeWorkgroup",
        FAR,
        MODEL + COHERENT.format("devicecoherent"),
    ),
    "coherent_of_the_group": Pair(
        f"if (g == 0u) {{ c[0] = 7u; {STORED} }} if (g == @ && {LOADED}) b[0] = c[0];",
        "1u",
        "W",
        AVAILABLE,
        MODEL + COHERENT.format("workgroupcoherent"),
    ),
    "made_available": Pair(
        f"if (g == 0u) {{ c[0] = 7u; {STORED_SO} }} if (g == W && {LOADED_SO}) b[0] = c[0];",
        " | gl_SemanticsMakeAvailable",
        "",
        AVAILABLE,
        MODEL + COHERENT.format("nonprivate"),
    ),
    "made_visible": Pair(
        f"if (g == 0u) {{ c[0] = 7u; {STORED_SO.replace('@', MAKE)} }}"
        f" if (g == W && {LOADED_SO.replace(SEEN, '@')}) b[0] = c[0];",
        SEEN,
        "",
        "not visible to it",
        MODEL + COHERENT.format("nonprivate"),
    ),
    "one_descriptor": Pair(
        f"if (g == 0u) {{ c[0] = 7u; {STORED} }} if (g == W && {LOADED}) b[0] = @[0];",
        "c",
        "d",
        "different descriptors",
        MODEL + COHERENT.format("devicecoherent") + AGAIN,
    ),
    "shared_memory_of_the_model": Pair("s[l] = g; @ b[g] = s[l ^ 1u];", "barrier();", "", NEAR, MODEL),
    "look_back_that_waits": Pair(
        "if (l == 0u) { uint sum = n + 1u; if (n > 0u) { while (atomicAdd(a[n - 1u], 0u) != 1u) ; @ sum += b[n - 1u];"
        " } b[n] = sum; memoryBarrierBuffer(); atomicExchange(a[n], 1u); }",
        "memoryBarrierBuffer();",
        "",
        FAR,
    ),
    "wait_in_a_group": Pair(
        "if (l < 2u) s[l] = 0u; barrier(); if (l == 0u) { s[5] = 7u; @ atomicExchange(s[1], 1u); } if (l == W / 2u) { "
        "while (atomicAdd(s[1], 0u) == 0u) ; memoryBarrierShared(); b[n] = s[5]; }",
        "memoryBarrierShared();",
        "",
        NEAR,
    ),
    "ticket_lock": Pair(
        "uint t = atomicAdd(a[0], 1u); while (atomicAdd(a[1], 0u) != t) ; memoryBarrierBuffer(); a[9] += g; @ "
        "atomicAdd(a[1], 1u);",
        "memoryBarrierBuffer();",
        "",
        NEAR,
    ),
    "barrier_of_all_groups": Pair(
        "b[g] = g; memoryBarrierBuffer(); barrier(); if (l == 0u) { memoryBarrierBuffer(); atomicAdd(a[0], 1u); while"
        " (atomicAdd(a[0], 0u) != 0x11111113u) ; memoryBarrierBuffer(); } @ a[64u + g] = b[g ^ W];",
        FENCED,
        "",
        FAR,
    ),
    "transpose_of_tiles": Pair(
        "uint x = l % R, y = l / R; s[y * (R + 1u) + x] = a[g]; @ b[n * W + y * R + x] = s[x * (R + 1u) + y];",
        "barrier();",
        "",
        NEAR,
    ),
    "soft_max": Pair(
        "s[l] = g; barrier(); for (uint k = W / 2u; k > 0u; k >>= 1) { if (l < k) s[l] = max(s[l], s[l + k]);"
        " barrier(); } uint m = s[0]; @ s[l] = m - g; barrier(); for (uint k = W / 2u; k > 0u; k >>= 1) { if (l < k)"
        " s[l] += s[l + k]; barrier(); } b[g] = s[0];",
        "barrier();",
        "",
        NEAR,
    ),
    "root_mean_square": Pair(
        "uint sum = 0u; for (uint i = l; i < 2u * W; i += W) sum += a[i] & 255u; s[l] = sum; barrier(); for (uint k ="
        " W / 2u; k > 0u; k >>= 1) { if (l < k) s[l] += s[l + k]; @ } b[g] = s[0];",
        "barrier();",
        "",
        NEAR,
    ),
    "product_of_tiles": Pair(
        "uint sum = 0u; for (uint t = 0u; t < 2u; t++) { s[l] = a[t * W + l]; s[W + l] = a[t * W + (l ^ R - 1u)]; "
        "barrier(); for (uint k = 0u; k < R; k++) sum += s[l / R * R + k] * s[W + k * R + l % R]; @ } b[g] = "
        "sum;",
        "barrier();",
        "",
        NEAR,
    ),
    "butterfly": Pair(
        "s[l] = a[g]; for (uint h = 1u; h < W; h <<= 1) { @ uint v = s[l ^ h]; barrier(); s[l] = (l & h) == 0u ? "
        "s[l] + v : v - s[l]; } b[g] = s[l];",
        "barrier();",
        "",
        NEAR,
    ),
    "ranks_of_digits": Pair(
        "if (l < 4u) s[l] = 0u; barrier(); uint d = g & 3u; uint r = @; barrier(); b[g] = s[d] + r;",
        "atomicAdd(s[d], 1u)",
        "s[d]++",
        NEAR,
    ),
    "compaction": Pair(
        "if (l == 0u) s[0] = 0u; barrier(); if ((g & 1u) == 0u) s[1u + atomicAdd(s[0], 1u)] = g; @ if (l < s[0]) b[g]"
        " = s[1u + l];",
        "barrier();",
        "",
        HALF,
    ),
    "ping_pong_of_buffers": Pair(
        "b[g] = g; memoryBarrierBuffer(); barrier(); a[g] = b[n * W + (l + 1u & W - 1u)]; @ b[g] = a[n * W + (l + 1u"
        " & W - 1u)];",
        FENCED,
        "",
        NEAR,
    ),
    "maximum": Pair("@;", "atomicMax(a[9], g)", "a[9] = max(a[9], g)", NEAR),
    "counter_of_a_group": Pair("if (l == 0u) b[n] = 0u; @ atomicAdd(b[n], 1u);", FENCED, "barrier();", HALF),
    "histogram_of_groups": Pair(
        "s[l] = 0u; barrier(); atomicAdd(s[g * 5u & W - 1u], 1u); barrier(); @;",
        "atomicAdd(b[l], s[l])",
        "b[l] += s[l]",
        FAR,
    ),
    "stencil_in_steps": Pair(
        "s[l] = a[g]; barrier(); for (uint i = 0u; i < 3u; i++) { uint v = s[l] + s[l + 1u & W - 1u]; barrier();"
        " s[l] = v; @ } b[g] = s[l];",
        "barrier();",
        "",
        NEAR,
    ),
    "last_loads_for_all": Pair(
        "if (l == W - 1u) s[0] = a[n]; @ for (uint i = 0u; i < 2u; i++) b[g * 2u + i] = s[0] + i;",
        "barrier();",
        "",
        NEAR,
    ),
    "sums_of_rows": Pair(
        "s[l] = g; barrier(); if (l < R) { uint t = 0u; for (uint i = 0u; i < R; i++) t += s[l * R + i]; s[W + "
        "l] = t; } @ b[g] = s[W + l / R];",
        "barrier();",
        "",
        NEAR,
    ),
}
