"""Jobs that tests/device/test_process.py runs in a child process."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import threading
from contextlib import nullcontext
from typing import Any

from vkharness.findings import UserError


def echo(**arguments: Any) -> dict[str, Any]:
    return {"pid": os.getpid(), **arguments}


def variable(name: str) -> dict[str, Any]:
    return {"value": os.environ.get(name)}


def die(number: int) -> dict[str, Any]:
    print("last words", file=sys.stderr, flush=True)
    os.kill(os.getpid(), number)
    signal.pause()
    return {}


def leave(code: int) -> dict[str, Any]:
    os._exit(code)


def hang() -> dict[str, Any]:
    threading.Event().wait()
    return {}


def instances(count: int, layer: str | None) -> dict[str, Any]:
    """Creates devices one after the other, and says how many thread-specific keys were left after each."""
    from vkharness.layer.listen import LayerListener
    from vkharness.rig.rig import Rig

    left = []
    for _ in range(count):
        with LayerListener.open(layer) if layer else nullcontext() as listener, Rig((), listener):
            pass
        left.append(_free_keys())
    return {"left": left}


def _free_keys() -> int:
    library = ctypes.CDLL(None)
    key = ctypes.c_uint()
    made = []
    while library.pthread_key_create(ctypes.byref(key), None) == 0:
        made.append(key.value)
    for value in made:
        library.pthread_key_delete(ctypes.c_uint(value))
    return len(made)


def refuse() -> dict[str, Any]:
    raise UserError("no such format")


def fail() -> dict[str, Any]:
    raise ZeroDivisionError("halved by nothing")


def shout(size: int) -> dict[str, Any]:
    """Prints more than a pipe holds, on both streams, then answers."""
    sys.stdout.write("o" * size)
    sys.stderr.write("e" * size)
    return {"size": size}


def not_a_dict() -> int:
    return 3


def headless(request: dict[str, Any]) -> dict[str, Any]:
    """Makes a device as asked for; its name, or why there is none."""
    from vkharness.device.headless import Headless

    try:
        with Headless(**request) as device:
            return {"device": device.device_name, "error": ""}
    except UserError as error:
        return {"device": "", "error": str(error)}
