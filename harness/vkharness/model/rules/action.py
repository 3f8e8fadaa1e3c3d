"""The rules for action commands and for the execution of secondary command buffers."""

from __future__ import annotations

from vkharness.model.command_buffer_run import CommandBufferRun
from vkharness.model.opinion import ModelAccess
from vkharness.model.rules.usage import usage
from vkharness.model.stages import ACCESS_KINDS
from vkharness.trace.effects import Access, Execute, Unmodelled
from vkharness.trace.inherited import InheritedTargets
from vkharness.trace.operation_effects import NextOperation
from vkharness.trace.sparse_effects import BindingUse
from vkharness.trace.usage_effects import InvalidUsage


def access(run: CommandBufferRun, effect: Access) -> None:
    """A command does its work in pipeline stages, and the work of each stage is a node.

    The work of a stage comes after every earlier second synchronization scope that has the stage. The memory accesses
    of a stage happen where its work does. Specification: "Pipeline Stages", "Execution and Memory Dependencies".
    """
    run.access(effect)


def binding_use(run: CommandBufferRun, effect: BindingUse) -> None:
    """An access through the bindings of a sparse resource happens where the work of its stage does.

    Specification: "Binding Resource Memory". Rule: rules.md#a-binding-is-in-order-with-accesses-through-it.
    """
    kind = ACCESS_KINDS[effect.access_kind]
    use = ModelAccess(run.place, kind.name, kind.write, run.operation(kind.stage))
    for conflict in run.program.bindings.add(effect.resource, effect.spans, use, changes=False):
        run.program.conflict(conflict)


def next_operation(run: CommandBufferRun, effect: NextOperation) -> None:
    """Operations of one command that nothing orders are as far apart as those of two commands.

    Specification: "vkCmdBuildAccelerationStructuresKHR". Rule: rules.md#builds-of-one-call-are-in-no-order.
    """
    run.begin_operation()


def execute(run: CommandBufferRun, effect: Execute) -> None:
    """Commands of a secondary command buffer take their place in the primary's order as if recorded there.

    Specification: "Secondary Command Buffer Execution"; "Implicit Synchronization Guarantees" (submission order).
    Rules: rules.md#secondaries-stand-where-they-are-executed, rules.md#barriers-cross-command-buffer-levels.
    """
    for position, (id, commands) in enumerate(effect.buffers):
        run.secondary(id, commands, position)


def unmodelled(run: CommandBufferRun, effect: Unmodelled) -> None:
    """A command without a rule may touch anything."""
    run.program.unmodelled(effect.what)


def invalid_usage(run: CommandBufferRun, effect: InvalidUsage) -> None:
    """A command breaks a rule of valid usage, and nothing follows for the order.

    Specification: VUID-VkSubpassDescription2-pPreserveAttachments-03074; "Sparse Buffers and Fully-Resident Images".
    Rules: rules.md#preserved-attachments-are-not-used, rules.md#unbound-ranges-have-no-memory.
    """
    usage(run.program, effect.hazard, effect.resource, effect.resource_type, effect.prior, run.place)


def inherited(run: CommandBufferRun, effect: InheritedTargets) -> None:
    """The attachments of a secondary command buffer that runs outside any render pass instance are not known."""
    run.program.unmodelled("attachments of a secondary command buffer outside a render pass instance")
