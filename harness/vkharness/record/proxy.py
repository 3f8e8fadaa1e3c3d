"""Puts a session between the `vulkan` package and C, and takes it away again.

Four things are changed, and given back by `detach`:

* every module's reference to the package's `lib` object becomes a stand-in, whose functions are C function pointers of
  our own (cffi callbacks): whatever a program does with a function of `lib`, it does with ours;
* what `vkGetInstanceProcAddr` and `vkGetDeviceProcAddr` return is such a function pointer too;
* the package's `_callApi`, through which all its Python functions go, calls our Python function directly when it
  is handed one of these pointers. That is the quick way: the call costs less than the package's own argument
  handling, which it replaces, where the way through C and back adds about 0.5 microseconds.

Function pointers outlive a session, since programs keep them: after `detach` they only forward.
"""

from __future__ import annotations

import os
import sys
import threading
import types
from collections.abc import Callable
from typing import Any

from vkharness.findings import UserError
from vkharness.record import struct_layout as layout
from vkharness.record.critical import SIGNAL_FUNCTION, critical, critical_from_c, raise_in_the_program, uncritical
from vkharness.record.decode import Decoder
from vkharness.record.forward import CallSink, Function, make_converter, make_forwarder
from vkharness.record.lifetime import keeping
from vkharness.record.native_front import (
    NativeCommands,
    arm,
    call_directly,
    is_native,
    new_function,
    new_target,
    replaceable,
)
from vkharness.record.rebind import rebind
from vkharness.record.sites import Sites
from vkharness.spec.shapes import signature
from vkharness.trace.handles import HandleRegistry

PROC_ADDR = frozenset({"vkGetInstanceProcAddr", "vkGetDeviceProcAddr"})


class ProxiedFunction:
    """One C function under one name: the real pointer, and ours that leads to the session when there is one."""

    def __init__(self, name: str, real: Any) -> None:
        ffi = layout.package_ffi()
        self.name = name
        self.real = real
        self._driver = uncritical(real)
        self.forward: Function | None = None
        self.converter: Function | None = None
        through, failed = critical_from_c(self._through), critical(raise_in_the_program)
        self._callback = ffi.callback(ffi.typeof(real), through, onerror=failed)
        self.pointer = ffi.cast(ffi.typeof(real), self._callback)
        self._target = new_target(self.pointer, self._command) if is_native(name) else None

    def _command(self) -> Any:
        """The session's native command; None where there is no session, or none such."""
        proxy = _attached()
        return None if proxy is None else proxy.armed(self._target, self.name, self.real)

    def _through(self, *args: Any) -> Any:
        forward = self.forward
        if forward is None and (proxy := _attached()) is not None:
            forward = proxy.entry(self.name, self.real).forward
        return self._driver(*args) if forward is None else forward(*args)


_entries: dict[tuple[str, Any], ProxiedFunction] = {}
"""Every proxied function that was ever handed out, by name and real address."""
_pointers: dict[Any, ProxiedFunction] = {}
"""Every proxied function, by the address of the pointer that replaces the real function."""
_functions: dict[Callable[..., Any], Any] = {}
"""Every native function that was ever put in place of one of the package's."""
_active: list[Proxy] = []
_attaching = threading.Lock()


def _attached() -> Proxy | None:
    """The session's changes, while there is a session: another thread may end it at any time."""
    return next(iter(_active), None)


def _function(name: str, real: Callable[..., Any]) -> Any:
    """The native function in place of one of the package's, the same for all sessions."""
    if real not in _functions:

        def command() -> Any:
            proxy = _attached()
            return None if proxy is None else proxy.armed(made, name, getattr(proxy.lib, name))

        made = _functions[real] = new_function(real, command)
    return _functions[real]


class LibProxy:
    """Stands in for the package's `lib` object. Functions are made on first use; everything else is the real thing."""

    def __init__(self, proxy: Proxy) -> None:
        self.__dict__["_proxy"] = proxy

    def __getattr__(self, name: str) -> Any:
        proxy: Proxy = self.__dict__["_proxy"]
        value = getattr(proxy.lib, name)
        if name in PROC_ADDR or signature(name) is not None:
            value = proxy.entry(name, value).pointer
        self.__dict__[name] = value
        return value

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self.__dict__["_proxy"].lib, name, value)

    def __dir__(self) -> list[str]:
        return dir(self.__dict__["_proxy"].lib)


class Proxy:
    """The changes that one session makes to the `vulkan` package."""

    def __init__(self, package: types.ModuleType, recorder: CallSink, cut_chains: set[str], sites: Sites) -> None:
        ffi = layout.package_ffi()
        uintptr, void_pointer = ffi.typeof("uintptr_t"), ffi.typeof("void *")
        self.package = package
        self.recorder = recorder
        self.lib = package.__dict__["lib"]
        self.stand_in = LibProxy(self)
        self.objects = HandleRegistry(
            lambda handle: int(ffi.cast(uintptr, handle)), lambda raw: ffi.cast(void_pointer, raw)
        )
        self.decoder = Decoder(self.objects, cut_chains)
        self._commands = NativeCommands(self.decoder, recorder, sites)
        self._replaced = [(real, _function(name, real)) for name, real in replaceable(package).items()]
        self._armed: list[Any] = []
        self._is_over = False
        self._call_api = package.__dict__["_callApi"]
        self._new = package.__dict__["_new"]
        self._used: list[ProxiedFunction] = []
        self._lock = threading.RLock()
        self._quick: dict[Any, Function] = {}
        """Our function pointers to the Python functions that take what the package's callers pass."""
        self._adopted: dict[tuple[str, Any], Function] = {}
        """The same for real pointers that the package got before the session, by the name of its function."""

    def put_in(self, keep_alive: bool) -> None:
        """Changes the package."""
        rebind(self.lib, self.stand_in, [*self._replaced, SIGNAL_FUNCTION])
        self.package.__dict__["_callApi"] = self._make_call_api()
        call_directly(True)
        if keep_alive:
            owners, cdata = self.package.__dict__["_weakkey_dict"], layout.package_ffi().CData
            self.package.__dict__["_new"] = keeping(self._new, owners, cdata)

    def take_out(self) -> None:
        """Gives everything back; function pointers that the program keeps only forward from now on."""
        rebind(self.stand_in, self.lib, [(ours, real) for real, ours in (*self._replaced, SIGNAL_FUNCTION)])
        self.package.__dict__["_callApi"] = self._call_api
        self.package.__dict__["_new"] = self._new
        call_directly(False)
        with self._lock:
            for entry in self._used:
                entry.forward = entry.converter = None
            for target in self._armed:
                arm(target, None)
            self._used.clear()
            self._armed.clear()
            self._is_over = True

    def armed(self, target: Any, name: str, real: Any) -> Any:
        """The native command of a C function, which `target` calls from now on; None where there is none."""
        with self._lock:
            command = None if self._is_over else self._commands.of(name, real)
            if command is not None:
                self._armed.append(target)  # first: what is not noted is never given back
                arm(target, command)
            return command

    @critical
    def entry(self, name: str, real: Any) -> ProxiedFunction:
        """Our function pointer for a real one, leading to this session."""
        with self._lock:
            entry = _entries.get((name, real))
            if entry is None:
                entry = _entries[name, real] = ProxiedFunction(name, real)
                _pointers[entry.pointer] = entry
            if entry.forward is None:
                self._used.append(entry)  # first, as above
                forward = self._forwarder(name, real)
                entry.converter = self._converter(name, real, forward)
                self._quick[entry.pointer] = entry.converter
                entry.forward = forward  # last: who finds it finds the rest
            return entry

    def _converter(self, name: str, real: Any, forward: Function) -> Function:
        """Makes the function that takes a command's arguments as callers of the package pass them, and forwards it."""
        convert = critical(make_converter(name, forward, self.package.__dict__["_cast_ptr"]))
        command = self._commands.of(name, real)
        if command is None:
            return convert
        function: Function = new_function(convert)
        arm(function, command)
        return function

    def _forwarder(self, name: str, real: Any) -> Function:
        if name in PROC_ADDR:
            return self._proc_addr(name, real)
        return make_forwarder(name, real, self.decoder, self.recorder)

    def _proc_addr(self, name: str, real: Any) -> Function:
        """Stands in for vkGet*ProcAddr. These calls are not recorded: they change nothing, and captures lack them."""
        ffi, driver = layout.package_ffi(), uncritical(real)
        void_function = ffi.typeof("PFN_vkVoidFunction")

        def look_up(owner: Any, text: Any) -> Any:
            found = driver(owner, text)
            if found == ffi.NULL or text == ffi.NULL:
                return found
            wanted = ffi.string(text).decode("utf-8", "backslashreplace")
            try:
                if wanted not in PROC_ADDR and signature(wanted) is None:
                    if wanted.startswith(("vkCmd", "vkQueue")):
                        self.recorder.unseen(wanted)
                    return found
                ours = self.entry(wanted, ffi.cast(layout.prototype(wanted), found))
            except Exception as error:
                self.recorder.lost(wanted, error)
                return found
            return ffi.cast(void_function, ours.pointer)

        return look_up

    def _make_call_api(self) -> Callable[..., Any]:
        quick, adopt = self._quick.get, self._adopt

        def _callApi(fn: Any, *args: Any) -> Any:
            target = quick(fn)
            if target is None:
                target = adopt(fn, sys._getframe(1).f_code.co_name)
            return target(*args)

        return _callApi

    @critical
    def _adopt(self, fn: Any, name: str) -> Function:
        """The way for a pointer that this session did not make: an extension function got before the session.

        It is either ours from an earlier session, or the package's function that holds it bears the command's name.
        """
        ours = _pointers.get(fn)
        if ours is not None:
            return self.entry(ours.name, ours.real).converter or ours.real
        found = self._adopted.get((name, fn))
        if found is None:
            call_api = self._call_api
            if signature(name) is None:
                self.recorder.unseen(name)
                found = lambda *args: call_api(fn, *args)  # noqa: E731
            else:
                found = self._converter(name, fn, self._forwarder(name, fn))
            self._adopted[name, fn] = found
        return found


def install(recorder: CallSink, keep_alive: bool, cut_chains: set[str]) -> Callable[[int], str | None]:
    """Puts `recorder` between the package and C, until `remove`. Returns what names the current call site.

    `cut_chains` gets the names of structs of which a `pNext` chain could not be followed to its end.

    The package is imported here, so that programs that import it later get the stand-in. Where it cannot be (no such
    package, or no Vulkan loader), there is nothing to mirror and the program meets that error by itself.
    `UserError` when a session is attached already.
    """
    with _attaching:
        if _active:
            raise UserError("a session is attached already: detach it first (one session at a time mirrors a process)")
        try:
            import vulkan._vulkan as package
        except (ImportError, OSError):
            return lambda ours: None
        sites = Sites(os.path.dirname(os.path.abspath(str(package.__file__))))
        proxy = Proxy(package, recorder, cut_chains, sites)
        _active.append(proxy)  # first: `remove` takes out what was put in in part, too
        proxy.put_in(keep_alive)
    return sites.caller


def remove(recorder: CallSink) -> None:
    """Takes out what was put in for a recorder, if anything was. May be called again where it was interrupted."""
    with _attaching:
        for proxy in [each for each in _active if each.recorder is recorder]:
            proxy.take_out()
            _active.remove(proxy)


def current() -> CallSink | None:
    """The recorder of the attached session; None when no session is attached."""
    proxy = _attached()
    return None if proxy is None else proxy.recorder


def id_of(type_name: str, handle: Any) -> int | None:
    """The id of a live handle of a type, given as it is or as a number; None for what is no such handle."""
    proxy = _attached()
    if proxy is None:
        return None
    if isinstance(handle, int):
        return proxy.objects.table(type_name).get(handle) or None
    ffi = layout.package_ffi()
    if not isinstance(handle, ffi.CData) or ffi.typeof(handle) != ffi.typeof(type_name):
        return None
    return proxy.objects.table(type_name)[int(ffi.cast("uintptr_t", handle))] or None


def address_of(mapped: Any) -> tuple[int, int] | None:
    """(address, bytes) of a buffer; None for what is none."""
    ffi = layout.package_ffi()
    try:
        held = ffi.from_buffer(mapped)
    except TypeError:
        return None
    return int(ffi.cast("uintptr_t", held)), ffi.sizeof(held)
