"""Loads and stores of the shaders of draws: for each stage and each way to reach memory, one small shader.

The accesses are those of dispatches, at the stage of the shader (specification, "Access Types"). Every operation here
is a variant of one of a dispatch.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from vkharness.rig.command_buffers import Commands
from vkharness.spec.enums import VkPrimitiveTopology, VkShaderStage
from vkharness.suite.matrix.drawing_operations import drawn
from vkharness.suite.matrix.operation_table import Prepare, Record, operation
from vkharness.suite.matrix.resource_kinds import BUFFER, BYTES, IMAGE, ResourcePart
from vkharness.suite.matrix.shader_operations import general, part_bytes, sampled

POINTS, PATCHES = VkPrimitiveTopology.POINT_LIST, VkPrimitiveTopology.PATCH_LIST
CONTROL, EVALUATION = VkShaderStage.TESSELLATION_CONTROL, VkShaderStage.TESSELLATION_EVALUATION
STAGES = {
    "vert": "vertex",
    "tesc": "tessellation control",
    "tese": "tessellation evaluation",
    "geom": "geometry",
    "frag": "fragment",
}
"""Names of stages by the suffix of a shader."""


class Way(NamedTuple):
    """One way in which a shader reaches the part, through binding 0."""

    verb: str
    kind: str
    access: str
    other: str
    held: Callable[[ResourcePart], Any]


STORE = Way("store to buffer", BUFFER, "SHADER_STORAGE_WRITE", "SHADER_STORAGE_READ", part_bytes)
LOAD = Way("load from buffer", BUFFER, "SHADER_STORAGE_READ", "UNIFORM_READ", part_bytes)
UNIFORM = Way("load from uniform buffer", BUFFER, "UNIFORM_READ", "SHADER_STORAGE_READ", part_bytes)
STORE_TEXELS = Way("store to image", IMAGE, "SHADER_STORAGE_WRITE", "SHADER_STORAGE_READ", general)
LOAD_TEXELS = Way("load from image", IMAGE, "SHADER_STORAGE_READ", "SHADER_SAMPLED_READ", general)
SAMPLE = Way("sample", IMAGE, "SHADER_SAMPLED_READ", "SHADER_STORAGE_READ", sampled)
SHADERS = {
    **{f"store_words.{suffix}": STORE for suffix in STAGES},
    **{f"point_by_stored_word.{suffix}": LOAD for suffix in STAGES if suffix != "frag"},
    "stored_word_color.frag": LOAD,
    "point_by_uniform_word.vert": UNIFORM,
    "uniform_word_color.frag": UNIFORM,
    "store_texels.vert": STORE_TEXELS,
    "store_texels.frag": STORE_TEXELS,
    "point_by_loaded_texel.vert": LOAD_TEXELS,
    "loaded_texel_color.frag": LOAD_TEXELS,
    "point_by_sampled_texel.vert": SAMPLE,
    "sample_color.frag": SAMPLE,
}
"""Shaders by name, and how each reaches the part. Each makes one operation."""


def _preparation(shader: str, suffix: str, way: Way) -> Prepare:
    """Draws one vertex for each word or texel of the part; fragments cover the target."""

    def prepare(setup: Commands, part: ResourcePart, value: int) -> Record:
        stores = "WRITE" in way.access
        if stores:
            setup.rig.require("fragmentStoresAndAtomics" if suffix == "frag" else "vertexPipelineStoresAndAtomics")
        elements = BYTES // 4 if way.kind == BUFFER else part.extent[0] * part.extent[1]
        count = 3 if suffix == "frag" else elements
        return drawn(
            setup,
            lambda commands: commands.draw(count),
            held={"b0": way.held(part)},
            value=value if stores else None,
            **_stages(shader, suffix),
        )

    prepare.__name__ = f"{way.verb} in {STAGES[suffix]} shader"
    return prepare


def _stages(shader: str, suffix: str) -> dict[str, Any]:
    """The arguments of `Rig.graphics` for this shader in its stage and the simplest ones in the others."""
    if suffix == "frag":
        return {"fragment": shader}
    if suffix == "vert":
        return {"vertex": shader, "topology": POINTS}
    if suffix == "geom":
        return {"vertex": "point_by_index", "topology": POINTS, "between": {VkShaderStage.GEOMETRY: shader}}
    plain = {CONTROL: "plain.tesc", EVALUATION: "plain.tese"}
    plain[CONTROL if suffix == "tesc" else EVALUATION] = shader
    return {"vertex": "point_by_index", "topology": PATCHES, "between": plain}


for _shader, _way in SHADERS.items():
    _suffix = _shader.rpartition(".")[2]
    operation(
        _way.kind,
        scope=f"{STAGES[_suffix].replace(' ', '_').upper()}_SHADER/{_way.access}",
        other=_way.other,
        command="vkCmdDraw",
        variant=True,
    )(_preparation(_shader, _suffix, _way))
