"""What commands do in a state that earlier ones have set, by what all of them say.

A frame binds and draws what the frame before it did. What a draw does follows from what it says and from the state of
its command buffer, and that state follows from what the commands said that set it: the last ones of each *part*, such
as the pipeline of a bind point, or a range of push constants (`SETS`). So a `SaidState` stands for the state of one
command buffer after such commands. Its items say what a command does that says this in that state, and in which state
it leaves the command buffer. Whoever follows them (`Interpreter.repeat_next`, natively) runs no handler at all. The
members of `CommandBuffer` are behind then, and are brought up to the state before a handler looks at them (`settle`).

Descriptor sets that nobody has bound before often refer to what others referred to. What stands for such a bind is
what its sets refer to (`BoundContents`), so that the commands behind it are known. The members of the command buffer
have the sets themselves, which are bound again from there.

An item is kept for a command that is met in its state for the second time. It depends on objects beside the state. A
descriptor set that is written, or goes, ends what is known of the commands that bind it. Any other object that goes
ends everything that is known, unless no command here depends on it. What contents of memory or later writes of
descriptors decide is never known, nor what is not modelled.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable
from itertools import takewhile
from typing import Any, NamedTuple

from harness.commands.handlers import COMMANDS
from harness.commands.object_state import BoundSet, CommandBuffer, ObjectState
from harness.commands.recently_used import RecentlyUsed
from harness.commands.said_state import Parts, SaidState
from harness.spec._generated import COMMAND_ALIASES
from harness.trace.effects import Access, Barrier, EffectPlan, Unmodelled
from harness.trace.rendering_state import RenderingState
from harness.trace.resources import Buffer, DescriptorSet, Image, Memory

MOST_KNOWN = 1 << 15
"""The most commands that are known, each in one state."""
RENDERING = "rendering"
"""The part of the render pass instance. What holds it is the sayings of its begin and of each next subpass."""

Recording = tuple[EffectPlan | None, bool, RenderingState | None]
"""What recording a command came to: its plan, None where it has no effects; whether that says all that the command
does, but for the state that it sets; and the render pass instance before it."""


class KnownSaying:
    """What stands for a saying in states, as long as what is known of it holds. `buffer` is None behind that."""

    __slots__ = ("args", "buffer", "era", "name", "states")

    def __init__(self, name: str, args: dict[str, Any], buffer: CommandBuffer | None, era: int) -> None:
        self.name, self.args, self.buffer, self.era = name, args, buffer, era
        self.states: list[SaidState] = []
        """Those in which it is known what the command does."""


class BoundContents(NamedTuple):
    """What stands for a bind of a set by what the set refers to: the number of that, and its dynamic offsets."""

    number: int
    dynamic: tuple[int, ...]


# -- what commands set -------------------------------------------------------------------------------------------------

Setter = Callable[[dict[str, Any]], Iterable[Hashable] | None]
"""By its arguments, the parts of the state that a command sets, each as a whole. None where more decides that."""
SETS: dict[str, Setter] = {}
"""The commands whose state is told by what they say (`harness.commands.drawing.state_parts`)."""
LASTS: dict[str, Callable[[ObjectState, dict[str, Any]], bool]] = {}
"""Of those, the commands of which something must hold, so that what they set follows from what they say and stays."""
BINDS_SETS = ("vkCmdBindDescriptorSets",)
BoundAlike = tuple[tuple[tuple[str, int, int], BoundContents], BoundSet]
"""A part of the state and what stands for it, and the set that is bound there."""
ALIKE: dict[str, Callable[[ObjectState, dict[str, Any]], list[BoundAlike] | None]] = {}
"""What these bind, and what stands for it. None where a set tells more or less."""
MOST_CONTENTS = 1 << 12
"""The most contents that are remembered as bound once."""
MOST_ENDS = 4
"""How often what is known of a command that binds a set may end. Such a set is written in every frame, it seems."""
BEGIN = frozenset({"vkCmdBeginRenderPass", "vkCmdBeginRenderPass2", "vkCmdBeginRendering"})
NEXT = frozenset({"vkCmdNextSubpass", "vkCmdNextSubpass2"})
END = frozenset({"vkCmdEndRenderPass", "vkCmdEndRenderPass2", "vkCmdEndRendering"})
READS = frozenset(
    f"vkCmd{name}" for name in (
        "Dispatch", "DispatchBase", "DispatchIndirect", "Draw", "DrawIndexed", "DrawIndirect", "DrawIndirectCount",
        "DrawIndexedIndirect", "DrawIndexedIndirectCount", "ClearAttachments",
    )
)  # fmt: skip
"""The commands that read state and set none."""
KEEPS_STATE = frozenset(
    f"vkCmd{name}" for name in (
        "BeginDebugUtilsLabelEXT", "BlitImage", "BlitImage2", "ClearColorImage", "ClearDepthStencilImage", "CopyImage",
        "CopyBufferToImage", "CopyBufferToImage2", "CopyImage2", "CopyImageToBuffer", "CopyImageToBuffer2",
        "EndDebugUtilsLabelEXT", "InsertDebugUtilsLabelEXT", "ResetEvent", "ResetEvent2", "ResetQueryPool",
        "ResolveImage", "ResolveImage2", "SetEvent", "SetEvent2", "WaitEvents", "WaitEvents2", "WriteTimestamp",
        "WriteTimestamp2",
    )
)  # fmt: skip
"""The commands that set nothing that another command reads."""


class SaidStates:
    """The states of all command buffers of one program."""

    def __init__(self, objects: ObjectState) -> None:
        self._objects = objects
        self._era = 0
        """How often everything that was known has ended."""
        self._once = KnownSaying("", {}, None, 0)
        """Stands for what was said once since then."""
        self._states: dict[Hashable, SaidState] = {}
        self._known = 0
        self._resources: set[int] = set()
        """The buffers and images of plans that are known."""
        self._binds: dict[int, list[KnownSaying]] = {}
        """By descriptor set: who binds it."""
        self._ended: dict[int, int] = {}
        """By descriptor set: how often what was known of those has ended."""
        self._contents: RecentlyUsed[BoundContents, bool] = RecentlyUsed(MOST_CONTENTS)
        """What was bound since then."""
        self._bound: dict[int, dict[int, CommandBuffer]] = {}
        """By descriptor set: the command buffers in which `BoundContents` stands for it, by id."""
        self._behind: dict[int, CommandBuffer] = {}
        """Command buffers whose members may be behind their state, by id."""

    def of(self, buffer: CommandBuffer) -> SaidState | None:
        """The state of a command buffer, if anything is known in it."""
        state = buffer.said
        if state is None:
            if buffer.parts is None or not self._hold(buffer.parts):
                return None
            state = buffer.said = buffer.settled = self._states.get((buffer.id, *buffer.parts.items()))
        return state if state is not None and state.era == self._era and buffer.inheritance is None else None

    def advance(self, buffer: CommandBuffer, state: SaidState | None) -> None:
        """The command buffer is in this state now, and its members may be behind."""
        if state is not None and state is not buffer.said:
            buffer.said = state
            self._behind[buffer.id] = buffer

    def settle(self, buffer: CommandBuffer) -> None:
        """Brings the members of a command buffer up to its state."""
        state = buffer.said
        self._behind.pop(buffer.id, None)
        if state is None or state is buffer.settled:
            return
        before, after = _items(buffer.settled), _items(state)
        same = sum(1 for _ in takewhile(_are_one, zip(before, after, strict=False)))
        sets = {part: buffer.sets[part[1]][part[2]] for part, each in after if type(each) is BoundContents}
        if not {part for part, _ in before[same:]} <= {part for part, _ in after[same:]}:
            same = 0
        if not same:
            buffer.unbind()
        done = set[KnownSaying]()
        for part, each in after[same:]:  # what is behind a part may have set it before
            if type(each) is BoundContents:
                _, point, index = part
                buffer.sets.setdefault(point, {})[index] = sets[part]
            elif each not in done:
                COMMANDS[each.name](self._objects, buffer, each.args)
                done.add(each)
        buffer.rendering = state.rendering
        buffer.settled = state

    def note(self, buffer: CommandBuffer, name: str, args: dict[str, Any], said: Any, found: Recording) -> None:
        """A handler was asked for a command. `said` is its saying, None where nobody knows it."""
        name = COMMAND_ALIASES.get(name, name)
        held = buffer.parts if buffer.said is None else self._held(buffer)
        if held is None or name in KEEPS_STATE:
            return
        is_known = said is not None and found[1]
        if name in READS and (not is_known or None in held.values()):
            return
        alike, saying = None, None
        if is_known and said.kept is None:
            said.kept, alike = self._once, self._alike(name, args)
        elif is_known:
            saying = self._saying(buffer, name, args, said, found[0])
        before = buffer.said or self._state(buffer, held, found[2]) if saying is not None or alike else None
        if name in READS:
            self._keep(before, saying, found[0], before)
            return
        parts = self._set(buffer, held, name, args, saying)
        if alike and parts is not None:
            parts.update([item for item, _ in alike])
            self._note_bound(buffer, alike)
        after = None if parts is None else self._state(buffer, parts, buffer.rendering)
        self._keep(before, _standing_for(alike) if alike else saying, found[0], after)
        buffer.said = buffer.settled = after
        buffer.parts = parts

    def _alike(self, name: str, args: dict[str, Any]) -> list[BoundAlike] | None:
        """What a command binds that refers to what was bound before; None where that is new."""
        alike = ALIKE[name](self._objects, args) if name in ALIKE else None
        if not alike:
            return None
        is_new = False
        for (_, contents), _ in alike:
            if self._contents.get(contents) is None:
                self._contents[contents] = is_new = True
        return None if is_new else alike

    def _note_bound(self, buffer: CommandBuffer, alike: list[BoundAlike]) -> None:
        for _, bound in alike:
            self._bound.setdefault(bound.set.id, {})[buffer.id] = buffer

    def bind(self, buffer: CommandBuffer, said: Any) -> bool:
        """Binds sets that nobody has bound before, as a saying says that nobody has said before; False where it is not
        known which state that leaves. Other members of the command buffer stay behind."""
        state = self.of(buffer)
        alike = None if state is None else ALIKE[said.name](self._objects, said.args)
        found = state.get(_standing_for(alike)) if alike and state is not None else None
        if alike is None or found is None:
            return False
        for ((_, point, index), _), bound in alike:
            buffer.sets.setdefault(point, {})[index] = bound
        self._note_bound(buffer, alike)
        self.advance(buffer, found[1])
        said.kept = self._once
        return True

    def _end_contents(self, buffer: CommandBuffer, descriptor_set: int) -> None:
        """What a set refers to stands for it no more."""
        ended = {
            part
            for part, each in (self._held(buffer) or {}).items()
            if type(each) is BoundContents and _is_bound(buffer, part, descriptor_set)
        }
        if ended:
            self.settle(buffer)
            self._know_less(buffer, ended)

    def _know_less(self, buffer: CommandBuffer, parts: Collection[Hashable]) -> None:
        """Nobody knows any more what has set these parts of the state."""
        held = self._held(buffer) or {}
        buffer.parts = {part: None if part in parts else each for part, each in held.items()}
        buffer.said = buffer.settled = None

    @staticmethod
    def lose(buffer: CommandBuffer) -> None:
        """Nobody knows what has set the state of a command buffer."""
        buffer.said = buffer.settled = buffer.parts = None

    def written(self, descriptor_set: int) -> None:
        """A descriptor set is about to be written, or to go: who binds it does another thing then."""
        for buffer in self._bound.pop(descriptor_set, {}).values():
            self._end_contents(buffer, descriptor_set)
        several = self._binds.pop(descriptor_set, ())
        for each in several:
            self._end(each)
        if several:
            self._ended[descriptor_set] = self._ended.get(descriptor_set, 0) + 1

    def changed(self, id: int) -> None:
        """An object of this id is about to come, or to be bound to memory."""
        if id in self._resources:
            self.forget()
        if id in self._binds or id in self._bound:
            self.written(id)

    def gone(self, thing: Any) -> None:
        """An object is about to go."""
        if isinstance(thing, DescriptorSet):
            self.written(thing.id)
            self._ended.pop(thing.id, None)
        elif isinstance(thing, Buffer | Image | Memory):
            self.changed(thing.id)
        elif self._states:
            self.forget()

    def forget(self) -> None:
        """Nothing is known any more."""
        for buffer in list(self._behind.values()):
            self.settle(buffer)
        self._era += 1
        self._once = KnownSaying("", {}, None, self._era)
        self._known = 0
        self._states.clear()
        self._resources.clear()
        self._binds.clear()

    def _held(self, buffer: CommandBuffer) -> Parts | None:
        """The parts of the state of a command buffer; None where these do not tell it."""
        state = buffer.said
        if state is None:
            return buffer.parts
        if state.era == self._era:
            return state.parts
        buffer.said = buffer.settled = None
        buffer.parts = dict.fromkeys(state.parts)
        return buffer.parts

    def _set(
        self, buffer: CommandBuffer, held: Parts, name: str, args: dict[str, Any], saying: KnownSaying | None
    ) -> Parts | None:
        """The parts after a command that sets some; None for one that may set anything."""
        if name in BEGIN or name in NEXT or name in END:
            return self._rendered(buffer, held, name, saying)
        setter = SETS.get(name)
        sets = None if setter is None else setter(args)
        if sets is None:
            return None
        parts = dict(held) if buffer.said is not None else held
        for part in sets:
            parts.pop(part, None)
            parts[part] = saying
        return parts

    @staticmethod
    def _rendered(buffer: CommandBuffer, held: Parts, name: str, saying: KnownSaying | None) -> Parts | None:
        """The parts after a command of a render pass instance. What suspended rendering or a store operation NONE does
        depends on more than the state."""
        parts, rendering = dict(held), buffer.rendering
        before = parts.pop(RENDERING, None)
        if buffer.suspended or buffer.instance_from is None:
            return None
        if name in END or rendering is None:
            return parts if rendering is None else None
        several: RenderingState | None = rendering
        while several is not None:
            if several.stores_if_written or several.suspends:
                return None
            several = several.following
        first = () if name in BEGIN else before
        parts[RENDERING] = None if saying is None or first is None else (*first, saying)
        return parts

    def _state(self, buffer: CommandBuffer, parts: Parts, rendering: RenderingState | None) -> SaidState | None:
        """The state that parts tell, if all of them are known, with this render pass instance."""
        if buffer.inheritance is not None or not self._hold(parts):
            return None
        key = (buffer.id, *parts.items())
        found = self._states.get(key)
        if found is None:
            if len(self._states) >= MOST_KNOWN:
                self.forget()
                return None
            found = self._states[key] = SaidState(dict(parts), rendering, self._era)
        return found

    def _hold(self, parts: Parts) -> bool:
        """Whether what is known of all sayings holds."""
        return None not in parts.values() and all(map(self._holds, parts.values()))

    def _holds(self, saying: Any) -> bool:
        """Whether what is known of a saying holds."""
        if type(saying) is tuple:
            return all(map(self._holds, saying))
        if type(saying) is BoundContents:
            return True
        return saying is not None and saying.buffer is not None and saying.era == self._era

    def _saying(
        self, buffer: CommandBuffer, name: str, args: dict[str, Any], said: Any, plan: EffectPlan | None
    ) -> KnownSaying | None:
        """What stands for a saying from the second time on that it is met."""
        kept = said.kept
        if kept is self._once:
            if not (_is_modelled(plan) and self._lasts(name, args)):
                return None
            made = said.kept = KnownSaying(name, args, buffer, self._era)
            if name in BINDS_SETS:
                for id in args["pDescriptorSets"] or ():
                    self._binds.setdefault(id, []).append(made)
            return made
        if type(kept) is KnownSaying and kept.buffer is buffer and kept.era == self._era:
            return kept if _is_modelled(plan) else None
        said.kept = self._once
        return None

    def _lasts(self, name: str, args: dict[str, Any]) -> bool:
        """Whether what a command sets follows from what it says for as long as objects stay as they are, and they
        seem to."""
        if name in BINDS_SETS and any(self._ended.get(id, 0) >= MOST_ENDS for id in args["pDescriptorSets"] or ()):
            return False
        return name not in LASTS or LASTS[name](self._objects, args)

    def _keep(self, before: SaidState | None, saying: Any, plan: EffectPlan | None, after: SaidState | None) -> None:
        """What a command does in a state, if that and the state after it are known."""
        if saying is None or after is None or before is None:
            return
        if self._known >= MOST_KNOWN:
            self.forget()
            return
        self._known += 1
        before[saying] = (plan, after)
        if type(saying) is KnownSaying:
            saying.states.append(before)
        if plan is not None:
            self._resources.update(resources(plan))

    def _end(self, saying: KnownSaying) -> None:
        """What is known of a saying holds no more."""
        buffer, saying.buffer = saying.buffer, None
        for state in saying.states:
            state.pop(saying, None)
        saying.states.clear()
        held = None if buffer is None else self._held(buffer)
        if buffer is not None and held is not None and saying in held.values():
            self.settle(buffer)
            self._know_less(buffer, {part for part, each in held.items() if each is saying})


def _is_bound(buffer: CommandBuffer, part: Any, descriptor_set: int) -> bool:
    _, point, index = part
    bound: BoundSet = buffer.sets[point][index]
    return bound.set.id == descriptor_set


def _standing_for(alike: list[BoundAlike]) -> Hashable:
    """What stands for a bind."""
    return tuple([item for item, _ in alike])


def _items(state: SaidState | None) -> list[tuple[Any, Any]]:
    """The parts of a state that are bound or set."""
    return [] if state is None else [item for item in state.parts.items() if item[0] != RENDERING]


def _are_one(pair: tuple[tuple[Any, Any], tuple[Any, Any]]) -> bool:
    """Whether two parts are the same one, and the same saying has set both."""
    (part, each), (other, saying) = pair
    return each is saying and part == other


def _is_modelled(plan: EffectPlan | None) -> bool:
    return plan is None or not any(isinstance(effect, Unmodelled) for effect in plan.effects)


def resources(plan: EffectPlan) -> Iterable[int]:
    """The buffers and images that accesses and barriers are of."""
    for effect in plan.effects:
        if isinstance(effect, Access):
            yield effect.resource
        elif isinstance(effect, Barrier):
            yield from (each.resource for each in effect.ranges)
