"""The child's side of `vkharness.device.process`.

`python -m vkharness.device.worker PARENT REQUEST_FD REPLY_FD PACKAGE...` reads one JSON request a line, calls the
function it names and writes one JSON reply a line. It leaves when the request pipe closes, and is killed when it does
not. PARENT is the process whose death kills it at once, 0 for none.

The reply is `{"value": dict}`, `{"user_error": line, "kind": class}` or `{"error": traceback}`.
"""

from __future__ import annotations

import faulthandler
import importlib
import json
import os
import signal
import sys
import traceback
from collections.abc import Sequence
from typing import Any

from vkharness.device.drivers import driver_library
from vkharness.device.failed_calls import failed_call, refusal
from vkharness.device.manifests import keep_loaded, manifest_files, named_places
from vkharness.device.parent_death import kill_after_closing, kill_with_parent
from vkharness.device.process import check_target
from vkharness.findings import UserError

LEAVE_SECONDS = 10
"""For the job at hand and for leaving, once the request pipe has closed."""


def main(arguments: Sequence[str]) -> None:
    """Serves requests until the pipe closes."""
    parent, request_fd, reply_fd, *packages = arguments
    faulthandler.enable()
    if int(parent):
        kill_with_parent(int(parent))
    kill_after_closing(int(request_fd), LEAVE_SECONDS)
    for manifest in manifest_files(named_places("VK_DRIVER_FILES", os.environ)):
        keep_loaded(driver_library(manifest))
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which then closes the pipe
    with open(int(request_fd), "rb") as requests, open(int(reply_fd), "wb", buffering=0) as replies:
        for line in requests:
            reply = json.dumps(answer(json.loads(line), packages)).encode() + b"\n"
            sys.stdout.flush()
            unsent = memoryview(reply)
            while unsent:
                unsent = unsent[replies.write(unsent) :]


def answer(request: dict[str, Any], packages: Sequence[str]) -> dict[str, Any]:
    """The reply to one request. Never raises for what the job does, JSON-able results included."""
    try:
        check_target(request["target"], packages)
        module, _, function = request["target"].partition(":")
        value = getattr(importlib.import_module(module), function)(**request["arguments"])
        if not isinstance(value, dict):
            raise TypeError(f"{request['target']} returned {type(value).__name__}, not a dict")
        json.dumps(value)
    except UserError as error:
        return {"user_error": str(error), "kind": type(error).__name__}
    except Exception as error:
        failed = failed_call(error)
        if failed is None:
            return {"error": traceback.format_exc()}
        refused = refusal(f"{failed.command} failed", failed.result)
        return {"user_error": str(refused), "kind": type(refused).__name__}
    return {"value": value}


if __name__ == "__main__":
    main(sys.argv[1:])
