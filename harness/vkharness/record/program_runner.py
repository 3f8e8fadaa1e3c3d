"""Runs an unmodified Python program as `__main__` under a session, the way `python PROGRAM.py ARGS` would.

`vkharness run` is `run_program`, then `exit_status`:

    with vkharness.attach(...) as session:
        own = run_program(path, arguments, session)
    sys.exit(exit_status(session, own))
"""

from __future__ import annotations

import atexit
import os
import sys
import threading
import traceback
import types
from collections.abc import Sequence
from importlib.machinery import SourceFileLoader
from typing import Any, TextIO

from vkharness.findings import UserError
from vkharness.record.session import Session

CLEAN, HAZARDS, UNKNOWN = 0, 1, 3
INTERRUPTED = 130
UNFLUSHED = 120
"""Python's exit status when the last of its output cannot be written."""
PYTHONS_OWN = frozenset(
    {"__main__", "abc", "codecs", "encodings", "genericpath", "io", "os", "posixpath", "site", "sitecustomize", "stat"}
    | {"vkharness", "vulkan"}
)
"""Modules that a program cannot replace by one in its folder: Python has imported them before. And what mirrors it."""


def run_program(path: str, arguments: Sequence[str], session: Session) -> int:
    """Runs the program until its threads and exit handlers are done, and returns its own exit status (0: success).

    It is `__main__`, with its own `sys.path[0]`, `sys.argv` and `__file__`, and stays so. Its failure is shown as
    Python shows it. The session stays attached. `UserError` when there is no such file, or it is no source file.
    """
    source = _read(path)
    full_path = os.path.abspath(path)
    main = types.ModuleType("__main__")
    main.__dict__.update(_names_of_main(full_path))
    sys.argv = [path, *arguments]
    sys.path[0:1] = [os.path.dirname(os.path.realpath(path))]
    sys.modules["__main__"] = main
    ours = _give_way(sys.path[0])
    status = _run(source, full_path, main)
    # Exit handlers destroy devices in many programs; they run here, so that the session sees it.
    for step in (_join_threads, atexit._run_exitfuncs):
        try:
            step()
        except KeyboardInterrupt as error:  # which costs what is left of this step, as in Python
            _show(error)
            status = status or INTERRUPTED
    sys.modules.update(ours)
    return status if _flushed() else status or UNFLUSHED


def _names_of_main(full_path: str) -> dict[str, Any]:
    """The names that `__main__` has before the first line of a program runs, beyond those of each module, in Python's
    order.

    CPython 3.14 makes annotations when somebody asks for them, and 3.15 has no `__cached__`.
    """
    names: dict[str, Any] = {"__loader__": SourceFileLoader("__main__", full_path)}
    if sys.version_info < (3, 14):
        names["__annotations__"] = {}
    names |= {"__builtins__": sys.modules["builtins"], "__file__": full_path}
    if sys.version_info < (3, 15):
        names["__cached__"] = None
    return names


def _flushed() -> bool:
    """Whether the program's streams took what it printed. What they did not take is dropped, as Python does."""
    whole = True
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream is not None and not stream.closed:
                stream.flush()
        except OSError as error:
            whole = False
            send_nowhere(stream)
            if stream is sys.stdout and sys.stderr is not None:
                print(f"vkharness: the program's output cannot be written: {error.strerror}", file=sys.stderr)
    return whole


def send_nowhere(stream: TextIO) -> None:
    """Lets what a stream still holds, and all that follows, go nowhere. Its number may be closed already."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    if nowhere != stream.fileno():
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)


def exit_status(session: Session, program: int = 0) -> int:
    """Exit status of `vkharness run`: the program's own failure, else 1 for hazards, 3 for no verdict, 0 for clean.

    A program that made no Vulkan call has no verdict.
    """
    if program:
        return program
    if not session.saw_calls:
        return UNKNOWN
    return {"clean": CLEAN, "hazards": HAZARDS}.get(session.verdict, UNKNOWN)


def _read(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            source = file.read()
    except OSError as error:
        raise UserError(f"cannot read the program {path}: {error.strerror}") from None
    if b"\0" in source:
        raise UserError(f"{path} is not a Python source file")
    return source


def _give_way(folder: str) -> dict[str, types.ModuleType]:
    """Takes modules that we imported away where the program's folder has one of that name: it would find its own.

    Returns them by name. What Python itself imports at its start stays, as it would for the program; so do we.
    """
    tops = {name.partition(".")[0] for name in sys.modules} - PYTHONS_OWN - set(sys.builtin_module_names)
    shadowed = {top for top in tops if _is_module(folder, top)}
    return {name: sys.modules.pop(name) for name in list(sys.modules) if name.partition(".")[0] in shadowed}


def _is_module(folder: str, name: str) -> bool:
    return any(os.path.isfile(os.path.join(folder, file)) for file in (f"{name}.py", os.path.join(name, "__init__.py")))


def _run(source: bytes, path: str, main: types.ModuleType) -> int:
    try:
        exec(compile(source, path, "exec", dont_inherit=True), main.__dict__)
    except SystemExit as stop:
        return _status_of(stop.code)
    except BaseException as error:
        _show(error)
        return INTERRUPTED if isinstance(error, KeyboardInterrupt) else 1
    return 0


def _status_of(code: object) -> int:
    """The exit status for `sys.exit(code)`, as Python has it. Prints a code that is neither a number nor None."""
    if code is None:
        return 0
    if isinstance(code, int):
        return code & 0xFF
    print(code, file=sys.stderr)
    return 1


def _show(error: BaseException) -> None:
    """Shows an error the program's own way, without the frames of this file."""
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_code.co_filename == __file__:
        trace = trace.tb_next
    shown = error.with_traceback(trace)
    try:
        sys.excepthook(type(shown), shown, trace)
    except Exception:
        traceback.print_exception(type(shown), shown, trace)


def _join_threads() -> None:
    """Waits for the threads that Python would wait for, and those that they start."""
    while True:
        others = [t for t in threading.enumerate() if not t.daemon and t is not threading.current_thread()]
        if not others:
            return
        for thread in others:
            thread.join()
