"""The commands of a command buffer: methods of the rig for transfers and dispatches, else the calls themselves."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from typing import Any

from vkharness.reproduction.c_structs import OF_UNIONS, c_call
from vkharness.reproduction.rig_barriers import barrier_text
from vkharness.reproduction.script import Script, function, word
from vkharness.spec.enums import VK_WHOLE_SIZE
from vkharness.spec.shapes import main_name
from vkharness.trace.calls import Call
from vkharness.trace.templates import plain

_LAYOUT = "VK_IMAGE_LAYOUT_"
GENERAL = "GENERAL"


def write_command(script: Script, variable: str, call: Call) -> None:
    """Writes one command into the command buffer of a variable."""
    call = plain(call)
    name = main_name(call.name)
    method = _METHODS.get(name.removesuffix("2"))
    text = method(script, call) if method else None
    if name.startswith("vkCmdPipelineBarrier"):
        script.line(barrier_text(script, variable, call))
    elif text is not None:
        script.line(f"{variable}.{text}")
    elif call.name in OF_UNIONS:
        script.line(c_call(script, call, [f"{variable}.handle"]))
    else:
        given = script.arguments(call, [f"{variable}.handle"])
        script.line(f"{function(call.name)}({', '.join(given)})")


def _fill(script: Script, call: Call) -> str:
    given = [script.names[call.args["dstBuffer"]], hex(call.args["data"]), *_place(call.args)]
    return f"fill({', '.join(given)})"


def _place(args: Mapping[str, Any]) -> list[str]:
    if args["dstOffset"] == 0 and args["size"] == VK_WHOLE_SIZE:
        return []
    size = [] if args["size"] == VK_WHOLE_SIZE else [str(args["size"])]
    return [str(args["dstOffset"]), *size]


def _update(script: Script, call: Call) -> str:
    offset = [str(call.args["dstOffset"])] if call.args["dstOffset"] else []
    return (
        f"update({', '.join([script.names[call.args['dstBuffer']], script.data(call.args['pData'] or b''), *offset])})"
    )


def _form(call: Call) -> tuple[Mapping[str, Any], list[str]]:
    """The arguments whichever form was called, and what the rig is told of the form."""
    info = next((value for key, value in call.args.items() if key.endswith("Info") and isinstance(value, dict)), None)
    return (call.args, []) if info is None else (info, ["v2=True"])


def _copy(script: Script, call: Call) -> str:
    args, form = _form(call)
    regions = [str((each["srcOffset"], each["dstOffset"], each["size"])) for each in args["pRegions"]]
    return f"copy({', '.join([script.names[args['srcBuffer']], script.names[args['dstBuffer']], *regions, *form])})"


def _part(region: Mapping[str, Any], layers: str, offset: str, extent: str) -> dict[str, Any]:
    """A region of an image as the rig takes it."""
    where = region[layers]
    made: dict[str, Any] = {"aspect": where["aspectMask"]}
    made |= {"mip": where["mipLevel"]} if where["mipLevel"] else {}
    made |= {"layer": where["baseArrayLayer"]} if where["baseArrayLayer"] else {}
    made |= {"layers": where["layerCount"]} if where["layerCount"] != 1 else {}
    made["offset"] = tuple(region[offset][axis] for axis in "xyz")
    if extent:
        made["extent"] = tuple(region[extent][side] for side in ("width", "height", "depth"))
    return made


def _layouts(args: Mapping[str, Any]) -> list[str]:
    pair = tuple(word("VkImageLayout", args[f"{side}ImageLayout"], _LAYOUT) for side in ("src", "dst"))
    return [] if pair == (GENERAL, GENERAL) else [f"layouts={pair!r}"]


def _two_images(method: str) -> Callable[[Script, Call], str]:
    def write(script: Script, call: Call) -> str:
        args, form = _form(call)
        read = [_part(each, "srcSubresource", "srcOffset", "extent") for each in args["pRegions"]]
        written = [_part(each, "dstSubresource", "dstOffset", "extent") for each in args["pRegions"]]
        images = [script.names[args["srcImage"]], script.names[args["dstImage"]]]
        parts = [repr(each[0] if len(each) == 1 else each) for each in (read, written)]
        return f"{method}({', '.join([*images, *parts, *_layouts(args), *form])})"

    return write


def _buffer_and_image(to_image: bool) -> Callable[[Script, Call], str]:
    def write(script: Script, call: Call) -> str:
        args, form = _form(call)
        parts = []
        for each in args["pRegions"]:
            part = _part(each, "imageSubresource", "imageOffset", "imageExtent")
            for key, member in (("buffer_offset", "bufferOffset"), ("row_length", "bufferRowLength"),
                                ("image_height", "bufferImageHeight")):  # fmt: skip
                part |= {key: each[member]} if each[member] else {}
            parts.append(part)
        names = [script.names[args["srcBuffer" if to_image else "srcImage"]]]
        names.append(script.names[args["dstImage" if to_image else "dstBuffer"]])
        at = word("VkImageLayout", args["dstImageLayout" if to_image else "srcImageLayout"], _LAYOUT)
        where = [] if at == GENERAL else [f"at={at!r}"]
        method = "buffer_to_image" if to_image else "image_to_buffer"
        given = [*names, repr(parts[0] if len(parts) == 1 else parts), *where, *form]
        return f"{method}({', '.join(given)})"

    return write


def _clear_color(script: Script, call: Call) -> str | None:
    args = call.args
    if len(args["pRanges"] or ()) != 1:
        return None
    channels = struct.unpack("<4f", struct.pack("<4I", *args["pColor"]["uint32"]))
    value = sum(round(255 * min(max(each, 0.0), 1.0)) << 8 * at for at, each in enumerate(channels) if each == each)
    return f"clear_color({', '.join([script.names[args['image']], hex(value), *_cleared(args)])})"


def _clear_depth_stencil(script: Script, call: Call) -> str | None:
    args = call.args
    if len(args["pRanges"] or ()) != 1:
        return None
    value = args["pDepthStencil"]
    given = [script.names[args["image"]], repr(value["depth"]), str(value["stencil"]), *_cleared(args)]
    return f"clear_depth_stencil({', '.join([*given, 'aspects=' + str(args['pRanges'][0]['aspectMask'])])})"


def _cleared(args: Mapping[str, Any]) -> list[str]:
    part, at = args["pRanges"][0], word("VkImageLayout", args["imageLayout"], _LAYOUT)
    given = [] if at == GENERAL else [f"at={at!r}"]
    given.append(f"mips={(part['baseMipLevel'], part['levelCount'])}")
    return [*given, f"layers={(part['baseArrayLayer'], part['layerCount'])}"]


def _dispatch(script: Script, call: Call) -> str:
    count = [call.args[f"groupCount{axis}"] for axis in "XYZ"]
    return f"dispatch({', '.join(map(str, count)) if count != [1, 1, 1] else ''})"


def _execute(script: Script, call: Call) -> str:
    return f"execute({', '.join(script.names[each] for each in call.args['pCommandBuffers'])})"


_METHODS: dict[str, Callable[[Script, Call], str | None]] = {
    "vkCmdFillBuffer": _fill,
    "vkCmdUpdateBuffer": _update,
    "vkCmdCopyBuffer": _copy,
    "vkCmdCopyImage": _two_images("copy_image"),
    "vkCmdResolveImage": _two_images("resolve"),
    "vkCmdCopyBufferToImage": _buffer_and_image(True),
    "vkCmdCopyImageToBuffer": _buffer_and_image(False),
    "vkCmdClearColorImage": _clear_color,
    "vkCmdClearDepthStencilImage": _clear_depth_stencil,
    "vkCmdDispatch": _dispatch,
    "vkCmdExecuteCommands": _execute,
}
"""By the name of the first form."""
