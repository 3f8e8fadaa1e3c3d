"""Critical sections of the mirror: what runs between a call of the program and its return, but for the driver.

A signal handler of the program (Ctrl-C, a time limit by `signal.alarm`) may raise at any instruction. Raised in the
middle of one, the exception would leave the mirror half done: the driver would have a barrier of which the mirror
has not heard. So signals wait until the outermost one is over. The program's handler then runs in the program's frame,
and raises at the call that was made. The native core does that (`front_critical.hpp`). It stands before the C handler
of each signal that has a handler of Python, so that `signal` says what it always says.

Other exceptions cannot wait: what another thread raises here (`PyThreadState_SetAsyncExc`), memory that is not there,
and, without the native core, what signal handlers raise. They are passed on to the program, and the stream says that it
is cut off there: no verdict is clean from then on (`Session.lost`).

```python
from vkharness.record.critical import critical

@critical
def taken(what: list[int]) -> int:
    what.append(1)  # a signal that comes here is handled when `taken` has returned
    return len(what)

assert taken([]) == 1
```
"""

from __future__ import annotations

import ctypes
import functools
import os
import signal
import threading
from collections.abc import Callable
from types import CodeType, TracebackType
from typing import Any, TypeVar, cast

from vkharness.native import core

F = TypeVar("F", bound=Callable[..., Any])

FAULTS = frozenset(
    {signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE, signal.SIGILL, signal.SIGABRT, signal.SIGTRAP, signal.SIGSYS}
)
"""Signals of the instruction that runs, which cannot go on before they are handled."""
BACK_IN_THE_PROGRAM = 0.05
"""Seconds until an error that arrived inside one of our C callbacks is raised again, without the native core."""


def critical(function: F) -> F:
    """The same function, whose call is a critical section. Handlers for which it is time run before it; what they
    raise is raised instead of the call."""
    return function if core is None else core.Critical(function, "")


def critical_from_c(function: F) -> F:
    """The same of a function that C calls: what is raised before it is raised later, in the program."""
    return function if core is None else core.Critical(function, "callback")


def completed(function: F) -> F:
    """The same of a function that is called again where it raised, until it ends: then that is raised. For what must
    not be left half done and may be done twice."""
    if core is not None:
        made: F = core.Critical(function, "completed")
        return made

    @functools.wraps(function)
    def again(*arguments: Any) -> Any:
        try:
            return function(*arguments)
        except BaseException:
            function(*arguments)
            raise

    return cast(F, again)


def uncritical(function: Callable[..., Any]) -> Callable[..., Any]:
    """The same function of the driver or of the program, outside of critical sections: what comes while Python runs in
    it is handled there. What comes while there is none in a driver waits for the end of the section."""
    return function if core is None else functools.partial(core.uncritical, function)


def raise_in_the_program(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Raises an error, which C would swallow, when control is back in the program. Where the native core does not know
    when that is, some time later. It is shown as what nobody caught if the thread has ended by then."""
    if threading.current_thread() is threading.main_thread() and core is not None:
        core.raise_later(error)
        return
    # Python takes a type from outside and makes the error of it: of this type the one that there is.
    carrier = type(kind.__name__, (kind,), {"__new__": lambda _: error, "__init__": lambda _: None})
    shown = threading.ExceptHookArgs((kind, error, trace, threading.current_thread()))

    def raise_there(thread: int) -> None:
        if not ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(carrier)):
            threading.excepthook(shown)

    threading.Timer(BACK_IN_THE_PROGRAM, raise_there, (threading.get_ident(),)).start()


def _signal_functions() -> tuple[Callable[..., Any], Callable[..., Any]]:
    real = signal.signal

    @functools.wraps(real)
    def put_in_handler(*arguments: Any, **named: Any) -> Any:
        before = real(*arguments, **named)
        _stand_before_handlers()
        return before

    return real, put_in_handler


SIGNAL_FUNCTION = _signal_functions()
"""`signal.signal`, and what stands in for it while there is a session: Python's handler in C gets another place there.
No name of a module is bound to either, since such names are moved."""


def put_off_signals(on: bool) -> None:
    """Whether signals wait for the end of critical sections."""
    if on:
        _stand_before_handlers()
    elif core is not None:
        core.let_signals_through()


def _stand_before_handlers() -> None:
    if core is None:
        return
    numbers = (number for number in signal.valid_signals() - FAULTS if callable(signal.getsignal(number)))
    core.put_off_signals(threading.main_thread().ident or 0, tuple(map(int, numbers)))


def _forked() -> None:
    if core is not None:
        core.forked(threading.get_ident())


os.register_at_fork(after_in_child=_forked)


def is_the_mirrors(error: BaseException) -> bool:
    """Whether an error that was raised in a critical section is a fault of the mirror, of a judge or of a sink, and not
    what a signal handler or another thread raised there.

    A fault is an `Exception` that says something. What `PyThreadState_SetAsyncExc` raises says nothing, nor does memory
    that is not there. Python makes another error of what is raised in some places, with that as its cause.
    """
    if error.__cause__ is not None and not is_the_mirrors(error.__cause__):
        return False
    says = bool(error.args) or isinstance(error, AssertionError)
    if not isinstance(error, Exception) or isinstance(error, MemoryError) or not says:
        return False
    handlers = {_code_of(signal.getsignal(number)) for number in signal.valid_signals()} - {None}
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code in handlers:
            return False
        trace = trace.tb_next
    return True


def _code_of(handler: object) -> CodeType | None:
    """The code of a handler: that of a function, a method, or a class whose objects are called."""
    function = getattr(handler, "__func__", handler)
    if not hasattr(function, "__code__"):
        function = vars(type(handler)).get("__call__")
    found = getattr(function, "__code__", None)
    return found if isinstance(found, CodeType) else None
