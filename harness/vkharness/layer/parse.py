"""Messages of the Khronos layer as data: a pure parser of its texts, old and today's.

1.3.239 writes `usage: …, prior_usage: …, command: …, seq_no: …` into "Access info (…)", and at submit also into
"Recorded access info (…)". The *current* command is the function before `: Hazard` while recording, and `command:` of
the recorded access info at submit; `command:` of the access info is always the prior one.

Today's layers speak prose that changes; their `[Extra properties]` block is read (`name = value` lines), and where the
prose names a handle, a batch or a region of a buffer. At submit 1.4.309 has the later access in prose alone.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

HAZARD_PREFIX = "SYNC-HAZARD-"

RECORD = "record"
SUBMIT = "submit"

SUBMITTING = ("vkQueueSubmit", "vkQueueSubmit2", "vkQueueSubmit2KHR", "vkQueuePresentKHR")


@dataclass(frozen=True, slots=True)
class LayerMessage:
    """One warning or error of synchronization validation."""

    vuid: str
    """`SYNC-HAZARD-READ-AFTER-WRITE`, or an event rule such as `SYNC-vkCmdSetEvent-set-race`."""
    hazard: str
    """`READ_AFTER_WRITE`; for event rules today's identifier without `SYNC-`."""
    command: str
    """The vkCmd* whose access is the second one; at submit the recorded command, not vkQueueSubmit."""
    text: str
    kind: str
    """`record` or `submit`."""
    access: str = ""
    """`SYNC_COPY_TRANSFER_READ`; empty when the layer does not say."""
    prior_access: str = ""
    prior_command: str = ""
    """Empty when the layer does not say (both accesses belong to one command)."""
    seq_no: int | None = None
    """Number of the *prior* command in its command buffer, counted from 1 (commands that syncval knows only)."""
    recorded_seq_no: int | None = None
    """At submit: number of the current command in its command buffer."""
    entry: int | None = None
    """At submit: index of the command buffer in its batch."""
    batch: int | None = None
    """At submit: index of the batch; None when the layer does not say."""
    handle: tuple[str, int] = ("", 0)
    """Type and handle of the buffer, image, image view or event at issue; 0 when the layer does not say."""
    bytes: tuple[int, int] | None = None
    """(offset, size) of the accessed region of a buffer, which need not be hazardous as a whole."""
    resource: int = 0
    """The id of `handle` in the trace, where a caller gave it; 0 for unknown."""
    call: int | None = None
    """Block index of the API call in which the layer spoke, where a caller attributed it."""

    @property
    def key(self) -> tuple[str, str, str, str, str]:
        """The properties by which two judges' reports are compared, in the order of `Finding.key`."""
        return (self.hazard, self.command, self.prior_command, self.access, self.prior_access)

    def during(self, call: int, resource: int = 0) -> LayerMessage:
        """The same message, attributed to the call with that block index, and to the resource with that id."""
        return replace(self, call=call, resource=resource)


def is_synchronization(vuid: str) -> bool:
    """True for the hazards and the event rules of synchronization validation."""
    return vuid.startswith("SYNC-")


def plain_command(name: str) -> str:
    """A command's name without the KHR of its alias: both are one command."""
    return name.removesuffix("KHR")


def parse(vuid: str, text: str) -> LayerMessage:
    """The message as data. `vuid` is `pMessageIdName`, `text` is `pMessage`. Never fails: what the text does not say is
    left empty, so that an unforeseen text shows up as a disagreement and not as a crash."""
    body = text.partition(" | MessageID = ")[2].partition(" | ")[2] or text
    if vuid.startswith(HAZARD_PREFIX):
        hazard = vuid.removeprefix(HAZARD_PREFIX).replace("-", "_")
    else:
        hazard = _event_rule(vuid.removeprefix("SYNC-"))
    function = _FUNCTION.match(body.strip())
    name = function.group() if function else ""
    named = _HANDLE.search(body.partition("hazard detected")[2] or body)
    message = LayerMessage(
        vuid,
        hazard,
        name,
        text,
        SUBMIT if name in SUBMITTING else RECORD,
        handle=(named.group(1), int(named.group(2), 16)) if named else ("", 0),
    )
    return _with_properties(message, extra_properties(body)) if EXTRA_PROPERTIES in body else _with_info(message, body)


def _event_rule(name: str) -> str:
    """An event rule as today's layer calls it: 1.3.239 has `missingbarrier-set` for `set-race`, and so on. Today's has
    no rule for a reset after a wait; ours is named alike."""
    if name.startswith("vkCmdSetEvent") and name.endswith("-missingbarrier-wait"):
        return name.replace("-missingbarrier-wait", "-wait")
    head, old, last = name.partition("-missingbarrier-")
    return f"{head}-{last}-race" if old else name


_HANDLE = re.compile(r"(Vk(?:Buffer|Image|ImageView|Event)) (0x[0-9a-f]+)")


# --- old style -------------------------------------------------------------------------------------------------------

_FUNCTION = re.compile(r"vk\w+")
_FIELD = re.compile(r"(recorded_usage|prior_usage|usage|command|seq_no):\s*([^,)]*)")
_ENTRY = re.compile(r"for entry (\d+),")
_OWN_TRANSITION = "vs. layout transition in"
"""A load operation against the initial transition of its own render pass instance; its message has no access info."""


def _fields(text: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for name, value in _FIELD.findall(text):
        found.setdefault(name, value.strip())
    return found


def _with_info(message: LayerMessage, body: str) -> LayerMessage:
    head, at_submit, rest = body.partition("Recorded access info ")
    recorded: dict[str, str] = {}
    if at_submit:
        recorded_text, _, rest = rest.partition(" Access info ")
        recorded = _fields(recorded_text)
    else:
        head, _, rest = body.partition("Access info ")
    prior = _fields(rest)
    entry = _ENTRY.search(head)
    if _OWN_TRANSITION in head:
        prior = {"command": message.command, "prior_usage": "SYNC_IMAGE_LAYOUT_TRANSITION"}
    return replace(
        message,
        command=recorded.get("command", message.command),
        access=recorded.get("recorded_usage", prior.get("usage", "")),
        prior_access=prior.get("prior_usage", ""),
        prior_command=prior.get("command", ""),
        seq_no=_number(prior.get("seq_no")),
        recorded_seq_no=_number(recorded.get("seq_no")),
        entry=int(entry.group(1)) if entry else None,
        kind=SUBMIT if recorded else message.kind,
    )


def _number(text: str | None) -> int | None:
    return int(text) if text is not None and text.isdigit() else None


# --- today's style ---------------------------------------------------------------------------------------------------

EXTRA_PROPERTIES = "[Extra properties]"
_SAME_COMMAND = "by the same command"
"""The prior command of a hazard inside one command has no property of its own."""

_BATCH = re.compile(r"pSubmits\[(\d+)\]")
_BYTES = re.compile(r"\{\s*offset = (\d+),?\s*size = (\d+)\s*\}")
_MISSED = re.compile(
    r"ensure that a (?:(?P<transition>layout transition)"
    r"|(?:read|write) \((?P<access>VK_ACCESS_2_\w+)\) at (?P<stage>\w+))"
    r"|must allow (?P<allowed>VK_ACCESS_2_\w+) accesses at (?P<at>\w+)"
)
"""The access that nothing orders, as prose has it: at submit, 1.4.309 has no `access` among its properties."""
_STAGE_ACCESS = re.compile(r"VK_PIPELINE_STAGE_2_(\w+)\((?:VK_ACCESS_2_)?(\w+)\)")


def extra_properties(text: str) -> dict[str, str]:
    """The `name = value` lines after `[Extra properties]`."""
    lines = text.partition(EXTRA_PROPERTIES)[2].splitlines()
    pairs = (line.partition("=") for line in lines)
    return {name.strip(): value.strip() for name, sign, value in pairs if sign}


def access_name(text: str) -> str:
    """`VK_PIPELINE_STAGE_2_CLEAR_BIT(VK_ACCESS_2_TRANSFER_WRITE_BIT)` as `SYNC_CLEAR_TRANSFER_WRITE`. Names of accesses
    without Vulkan constants (`SYNC_IMAGE_LAYOUT_TRANSITION`) and anything else come back as they are."""
    found = _STAGE_ACCESS.fullmatch(text)
    return "_".join(("SYNC", _short(found.group(1)), _short(found.group(2)))) if found else text


def _short(flag: str) -> str:
    """A flag's name without `_BIT` and without the KHR of names that have become core; EXT and vendor tags stay, as in
    the names of `vkharness.spec.scopes`."""
    return re.sub(r"_BIT(?=_|$)", "", flag).removesuffix("_KHR")


def _missed_access(text: str) -> str:
    """The access that prose names, as a property would; empty where the prose leaves a part of it out."""
    found = _MISSED.search(text)
    if found is None:
        return ""
    if found["transition"]:
        return "SYNC_IMAGE_LAYOUT_TRANSITION"
    return f"{found['stage'] or found['at']}({found['access'] or found['allowed']})"


def _with_properties(message: LayerMessage, properties: dict[str, str]) -> LayerMessage:
    submitted = properties.get("message_type") == "SubmitTimeError"
    command = properties.get("command", message.command)
    same = command if _SAME_COMMAND in message.text else ""
    batch, region = _BATCH.search(message.text), _BYTES.search(message.text)
    return replace(
        message,
        hazard=properties.get("hazard_type", message.hazard),
        command=command,
        access=access_name(properties.get("access") or _missed_access(message.text)),
        prior_access=access_name(properties.get("prior_access", "")),
        prior_command=properties.get("prior_command", same),
        seq_no=_number(properties.get("seq_no")),
        entry=_number(properties.get("command_buffer_index")),
        batch=int(batch.group(1)) if batch else None,
        bytes=(int(region.group(1)), int(region.group(2))) if region else None,
        kind=SUBMIT if submitted else message.kind,
    )
