"""Is the verdict of a capture of RenderDoc that of the trace? Scenarios and their twins, recorded below its layer.

    python -m bench.renderdoc_scenarios LIBRARY [--every N] [--first N] [PATH]...

LIBRARY is `librenderdoc.so`; `renderdoccmd` must be on the path. Each scenario is recorded on lavapipe in a process of
its own, with the layer between. What RenderDoc captured of each variant meanwhile is converted, read and judged. A line
says where something else is found than in the trace. RenderDoc sees one queue where a scenario has several that are
emulated.
"""

from __future__ import annotations

import ctypes
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from bench.printed_scenarios import ROOT, how_alike
from vkharness.device.drivers import environment, find_driver
from vkharness.findings import UserError
from vkharness.suite.claims import Claim
from vkharness.suite.judge_scenario import load_module, record
from vkharness.suite.observe_scenarios import scenarios
from vkharness.suite.twins import Twin
from vkharness.trace.codec import load, save

LAYER = "VK_LAYER_RENDERDOC_Capture"
API_VERSION = 10102
TEMPLATE, START, END = 11, 19, 21
"""Places of functions in RenderDoc's in-application interface: where captures go, where one begins, where it ends."""
SECONDS = 120


def main_of_child(library: str, module: str, scenario: str, folder: str) -> None:
    """Records each variant of a scenario below the layer, from the making of its device to the end of that."""
    import vulkan as vk

    make, destroy = vk.vkCreateDevice, vk.vkDestroyDevice
    interface = ctypes.c_void_p()
    stem = ""

    def function(place: int, *kinds: Any) -> Callable[..., Any]:
        if not interface.value:
            assert ctypes.CDLL(library).RENDERDOC_GetAPI(API_VERSION, ctypes.byref(interface)) == 1
        table = ctypes.cast(interface, ctypes.POINTER(ctypes.c_void_p))
        return ctypes.CFUNCTYPE(ctypes.c_uint32, *kinds)(table[place] or 0)

    def made(*args: Any) -> Any:
        device = make(*args)
        function(TEMPLATE, ctypes.c_char_p)(stem.encode())
        function(START, ctypes.c_void_p, ctypes.c_void_p)(None, None)
        return device

    def destroyed(*args: Any) -> Any:
        function(END, ctypes.c_void_p, ctypes.c_void_p)(None, None)
        return destroy(*args)

    vk.vkCreateDevice, vk.vkDestroyDevice = made, destroyed
    claim = getattr(load_module(Path(module)), scenario)
    assert isinstance(claim, Claim)
    for number, variant in enumerate(claim.variants):
        stem = str(Path(folder, str(number)))
        try:
            blocks = record(claim, Twin(variant).amend, None)[0].blocks
        except UserError:
            continue
        save(Path(f"{stem}.jsonl"), blocks or [])


def compared(folder: Path) -> Counter[str]:
    """How the captures in a folder lie to the traces beside them."""
    counts: Counter[str] = Counter()
    for trace in sorted(folder.glob("*.jsonl")):
        capture = folder / f"{trace.stem}_capture.rdc"
        if not capture.is_file():
            counts["no capture"] += 1
            continue
        came, why = how_alike(load(trace), {capture.name: capture})
        counts[came] += 1
        if why:
            click.echo(f"{folder.name} {trace.stem}: {came}: {why[:400]}")
    return counts


@click.command(help=(__doc__ or "").splitlines()[0])
@click.option("--every", default=1, show_default=True, help="Only each so manieth scenario.")
@click.option("--first", default=0, show_default=True, help="The first of them.")
@click.argument("library", type=click.Path(exists=True, path_type=Path))
@click.argument("paths", nargs=-1, type=click.Path(path_type=Path))
def main(every: int, first: int, library: Path, paths: tuple[Path, ...]) -> None:
    """Prints what differs, then the counts."""
    counts: Counter[str] = Counter()
    library = library.resolve()
    with tempfile.TemporaryDirectory() as place:
        manifest = {"name": LAYER, "type": "GLOBAL", "library_path": str(library), "api_version": "1.3.0"}
        names = ("GetInstanceProcAddr", "GetDeviceProcAddr")
        functions = {f"vk{name}": f"{LAYER}{name}" for name in names}
        functions["vkNegotiateLoaderLayerInterfaceVersion"] = f"{LAYER}NegotiateLoaderLayerInterfaceVersion"
        about = {"implementation_version": "1", "description": "RenderDoc", "functions": functions}
        text = json.dumps({"file_format_version": "1.1.2", "layer": manifest | about})
        Path(place, "renderdoc.json").write_text(text, encoding="utf-8")
        variables = environment(find_driver("lavapipe"), os.environ)
        variables |= {"VK_LAYER_PATH": place, "VK_INSTANCE_LAYERS": LAYER, "PYTHONPATH": str(ROOT)}
        for file, name in list(scenarios(list(paths) or [ROOT / "scenarios"]))[first::every]:
            folder = Path(place, name)
            folder.mkdir(exist_ok=True)
            words = [sys.executable, "-m", "bench.renderdoc_scenarios", "--child", str(library), str(file), name]
            ended = subprocess.run([*words, str(folder)], env=variables, timeout=SECONDS, check=False)
            counts["died"] += ended.returncode != 0
            counts += compared(folder)
    click.echo(", ".join(f"{number} {what}" for what, number in counts.most_common() if number))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        main_of_child(*sys.argv[2:])
    else:
        main()
