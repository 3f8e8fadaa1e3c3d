"""Which shader stages the commands of a bind point run."""

from __future__ import annotations

from vkharness.spec.enums import VkPipelineBindPoint, VkShaderStage

_RAY_TRACING = (
    VkShaderStage.RAYGEN_KHR
    | VkShaderStage.ANY_HIT_KHR
    | VkShaderStage.CLOSEST_HIT_KHR
    | VkShaderStage.MISS_KHR
    | VkShaderStage.INTERSECTION_KHR
    | VkShaderStage.CALLABLE_KHR
)
STAGES_OF = {
    VkPipelineBindPoint.GRAPHICS: VkShaderStage.ALL_GRAPHICS | VkShaderStage.TASK_EXT | VkShaderStage.MESH_EXT,
    VkPipelineBindPoint.COMPUTE: VkShaderStage.COMPUTE,
    VkPipelineBindPoint.RAY_TRACING_KHR: _RAY_TRACING,
}
"""The VkShaderStageFlags of each VkPipelineBindPoint: graphics with mesh shading, compute, ray tracing."""


def points_of(stages: int) -> list[int]:
    """The VkPipelineBindPoints that run some of these stages."""
    return [point for point, own in STAGES_OF.items() if own & stages]
