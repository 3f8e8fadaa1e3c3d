"""One function a command: decode the arguments, forward the call, decode what came back, record it.

The function is written as Python source from the generated tables, once a command. Nothing that goes wrong inside the
mirror changes the call: it is forwarded all the same and the trouble is reported to the recorder. What the program
itself raises meanwhile goes on to the program (`critical`). No lock is held while a call is forwarded, so a thread that
waits for a fence blocks nobody.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from types import CodeType
from typing import Any, Protocol

from vkharness.record import struct_layout as layout
from vkharness.record.critical import is_the_mirrors, uncritical
from vkharness.record.decode import Decoder, length_value, pointer_value
from vkharness.record.payload_files import exported_file, exports, imported_file, imports
from vkharness.record.separate_aspects import separate_aspects
from vkharness.record.sites import GENERATED
from vkharness.spec._generated import HANDLES, STRUCTS
from vkharness.spec.command_classes import DESTROYERS
from vkharness.spec.followed import STRIDES
from vkharness.spec.shapes import Member, Signature, main_name, resolve, signature
from vkharness.trace.calls import SEPARATE_ASPECTS
from vkharness.trace.handles import CREATORS, PARENTS
from vkharness.trace.templates import PUSH_INFO, own_keys

Function = Callable[..., Any]


class CallSink(Protocol):
    """The functions that generated code calls for each command."""

    @property
    def log(self) -> Any:
        """Where native functions leave the calls of their commands (`CallLog` of the native core); None where they are
        to record each at once."""

    def record(self, name: str, args: dict[str, Any], result: int | None) -> None:
        """Takes one finished call."""

    def record_at(self, name: str, args: dict[str, Any], result: int | None, site: str | None) -> None:
        """Takes one finished call whose call site is known."""

    def lost(self, name: str, error: BaseException) -> None:
        """Takes note of an error for which a call that was made could not be recorded; raises what is the program's."""

    def refused(self, name: str, error: BaseException) -> None:
        """Takes note of an error that was raised before the call was known to be made: that of C, which refuses an
        argument, or one that the program raised."""

    def unseen(self, name: str) -> None:
        """Takes note of a command that the session cannot see."""

    def before(self, name: str) -> Callable[[dict[str, Any]], None] | None:
        """Gives the function to call with the arguments before a command is forwarded; None for most commands."""

    def after(self, name: str) -> Callable[[dict[str, Any], int | None], None] | None:
        """Gives the function to call with arguments and result before the call is recorded; None for most commands."""

    def cancelled(self, name: str) -> Callable[[], None] | None:
        """Gives the function that undoes `before` when the call itself raised; None for most commands."""


class CommandSource:
    """Writes the function of one command. `hooks` says which of the recorder's hooks it calls."""

    def __init__(self, name: str, shape: Signature, hooks: frozenset[str]) -> None:
        self.name = name
        self.params = shape.params
        self.returns = shape.returns
        self.hooks = hooks
        self.index = {param.name: i for i, param in enumerate(shape.params)}
        arguments = ", ".join(f"a{i}" for i in range(len(shape.params)))
        self.lines = [f"def {name}({arguments}):", "    args, is_made = None, False", "    try:", "        try:"]
        self._before()
        # The error counts only if the call itself takes place: C's argument checks come after ours.
        self.lines += ["        except BaseException as error:", "            if not is_the_mirrors(error): raise"]
        self.lines += ["            args, trouble = None, error"]
        self.lines += [f"        result = real({arguments})", "        is_made = True"]
        self.lines += ["        if args is None:", "            raise trouble"]
        self._after()
        self.lines += ["        return result", "    except BaseException as error:", "        if not is_made:"]
        if "cancelled" in hooks:
            self.lines.append("            if args is not None: cancelled()")
        self.lines += [f"            refused({name!r}, error)", "            raise"]
        self.lines += [f"        lost({name!r}, error)", "    return result"]
        self.source = "\n".join(self.lines) + "\n"

    def _before(self) -> None:
        add = self.lines.append
        for i, param in enumerate(self.params):
            if _is_address(param):
                add(f"            p{i} = int(cast(uintptr, a{i}))")
        items = (f"{p.name!r}: {'None' if _is_output(p) else self._input(i, p)}" for i, p in enumerate(self.params))
        add(f"            args = {{{', '.join(items)}}}")
        if own_keys(self.name):
            reader, given = ("template_data", "pData") if "pData" in self.index else ("pushed_data", PUSH_INFO)
            add(f"            args.update({reader}(args, p{self.index[given]}))")
        elif main_name(self.name) == "vkDestroyDescriptorUpdateTemplate":
            add("            template_destroyed(args['descriptorUpdateTemplate'])")
        if imports(self.name):
            add(f"            args.update(imported_file({self.name!r}, args))")
        if "before" in self.hooks:
            add("            before(args)")
        target = self._destroyed()
        if target is not None:
            many = bool(target.pointer)
            add(f"            gone = args[{target.name!r}]")
            add("            for one_gone in gone or (): retire(one_gone)" if many else "            retire(gone)")
        if self.name == "vkResetDescriptorPool":
            add("            retire_children(args['descriptorPool'])")

    def _after(self) -> None:
        outputs = [(i, param) for i, param in enumerate(self.params) if _is_output(param)]
        fails = self.returns == "VkResult"
        pad = " " * 8
        if outputs and fails:
            self.lines.append(pad + "if result >= 0:")
            pad += "    "
        for i, param in outputs:
            self.lines.append(f"{pad}args[{param.name!r}] = {self._output(i, param)}")
        if self.name == "vkCreateDevice":
            self.lines.append(f"{pad}separate = separate_aspects(a0)")
            self.lines.append(f"{pad}if separate is not None: args[{SEPARATE_ASPECTS!r}] = separate")
        if exports(self.name):
            self.lines.append(f"{pad}args.update(exported_file(args))")
        if main_name(self.name) == "vkCreateDescriptorUpdateTemplate":
            self.lines.append(pad + "template_created(args)")
        result = "None" if self.returns == "void" else "int(result)"
        if "after" in self.hooks:
            self.lines.append(f"        after(args, {result})")
        self.lines.append(f"        record({self.name!r}, args, {result})")

    def _input(self, i: int, param: Member) -> str:
        name = resolve(param.type)
        if _is_address(param):
            if param.name == "ppBuildRangeInfos" or param.name == "ppMaxPrimitiveCounts":
                return self._geometry_lists(i, param)
            if param.dims:
                number = layout.scalar_code(name) or "B"
                size = param.dims[0] * layout.size_of_number(number)
                return _if_there(f"list(many({number!r}, p{i}, {param.dims[0]}))", i, str(size), param)
            of, stride = STRIDES.get(self.name, ("", ""))
            apart = self._count(stride) if of == param.name else ""
            return pointer_value(param, f"p{i}", self._length(param), stride=apart)
        if name in HANDLES:
            return f"T_{name}[a{i}]"
        code = layout.scalar_code(name)
        if code is None:
            return "None"
        kind = "float" if code in "fd" else "int"
        return f"a{i} if a{i}.__class__ is {kind} else {kind}(a{i})"

    def _geometry_lists(self, i: int, param: Member) -> str:
        """One list an acceleration structure, as long as its `geometryCount`: the tables count the outer one only."""
        name = resolve(param.type)
        infos = self.index["pInfos"]
        struct = "VkAccelerationStructureBuildGeometryInfoKHR"
        field, size = layout.fields_of(struct)["geometryCount"], layout.size_of(struct)
        count = f"count_at('I', p{infos} + j * {size} + {field.offset}, 'pInfos')"
        if name in STRUCTS:
            each = layout.size_of(name)
            inner = f"[R_{name}(q) for q in range(base, base + {count} * {each}, {each})]"
        else:
            each, inner = 4, f"list(many('I', base, {count}))"
        inner = f"{inner} if there(base, {count} * {each}, {param.name!r}) else None"
        length = self._length(param)
        lists = f"[{inner} for j, base in enumerate(many('Q', p{i}, {length}))]"
        return _if_there(lists, i, f"8 * {length}", param)

    def _output(self, i: int, param: Member) -> str:
        name = resolve(param.type)
        length = self._length(param)
        if name not in HANDLES:
            return pointer_value(param, f"p{i}", length)
        make = "create" if self.name.startswith(CREATORS) else "see"
        parent = self._parent()
        if length is None:
            return _if_there(f"{make}({name!r}, one('Q', p{i}), {parent})", i, "8", param)
        made = f"[{make}({name!r}, h, {parent}) for h in many('Q', p{i}, {length})]"
        return _if_there(made, i, f"8 * {length}", param)

    def _parent(self) -> str:
        path = PARENTS.get(self.name)
        if path is None:
            first = self.params[0]
            return f"args[{first.name!r}]" if resolve(first.type) in HANDLES and not first.pointer else "0"
        return "args" + "".join(f"[{step!r}]" for step in path)

    def _destroyed(self) -> Member | None:
        if not self.name.startswith(DESTROYERS):
            return None
        named = [p for p in self.params if resolve(p.type) in HANDLES]
        return named[-1] if named else None

    def _length(self, param: Member) -> str | None:
        if isinstance(param.length, tuple) and param.length[0] == "path":
            owner, member = param.length[1], param.length[-1]
            struct = resolve(self.params[self.index[owner]].type)
            code = layout.scalar_code(next(m.type for m in signature_members(struct) if m.name == member))
            at = layout.fields_of(struct)[str(member)].offset
            return f"count_at('{code}', p{self.index[owner]} + {at}, {owner!r})"
        return length_value(param, self._count)

    def _count(self, sibling: str) -> str:
        i = self.index[sibling]
        param = self.params[i]
        if not param.pointer:
            return f"int(a{i})"
        return f"count_at('{layout.scalar_code(param.type)}', p{i}, {param.name!r})"


def _if_there(value: str, i: int, size: str, param: Member) -> str:
    """Python expression for `value`, which is read behind argument `i`; None for a null pointer."""
    return f"{value} if p{i} and there(p{i}, {size}, {param.name!r}) else None"


def signature_members(struct: str) -> tuple[Member, ...]:
    """Members of a struct that the tables certainly have."""
    from vkharness.spec.shapes import members

    found = members(struct)
    if found is None:
        raise LookupError(struct)
    return found


def _is_address(param: Member) -> bool:
    return bool(param.pointer or param.dims)


def _is_output(param: Member) -> bool:
    """Parameters that C writes to: pointers without const to a type that we can read."""
    if not param.pointer or param.const:
        return False
    name = resolve(param.type)
    return name == "void" or name in STRUCTS or name in HANDLES or layout.scalar_code(name) is not None


@cache
def _compiled(name: str, hooks: frozenset[str]) -> CodeType | None:
    shape = signature(name)
    if shape is None:
        return None
    return compile(CommandSource(name, shape, hooks).source, f"{GENERATED}{name}>", "exec")


def of_this_process(real: Function) -> dict[str, Any]:
    """What generated code does with C, by the names that it uses, for calls of this process to the function `real`:
    how a value becomes an address, the call itself, and what is asked beside it."""
    ffi = layout.package_ffi()
    return {
        "real": uncritical(real),
        "cast": ffi.cast,
        "uintptr": ffi.typeof("uintptr_t"),
        "separate_aspects": separate_aspects,
        "exported_file": exported_file,
        "imported_file": imported_file,
    }


def make_forwarder(
    name: str,
    real: Function,
    decoder: Decoder,
    recorder: CallSink,
    origin: Callable[[Function], dict[str, Any]] = of_this_process,
) -> Function:
    """The function that stands in for C function `name`, whose C function pointer is `real`.

    It takes what `real` takes (cffi values). A command that the tables lack raises `LookupError`. Calls that another
    process made have another `origin`.
    """
    hooks = {"before": recorder.before(name), "after": recorder.after(name), "cancelled": recorder.cancelled(name)}
    used = {hook: function for hook, function in hooks.items() if function is not None}
    code = _compiled(name, frozenset(used))
    if code is None:
        raise LookupError(name)
    names = decoder.bind(code)
    names.update(
        used | origin(real),
        record=recorder.record,
        lost=recorder.lost,
        refused=recorder.refused,
        is_the_mirrors=is_the_mirrors,
        create=decoder.objects.create,
        see=decoder.objects.see,
        retire=decoder.objects.retire,
        retire_children=decoder.objects.retire_children,
    )
    exec(code, names)
    made: Function = names[name]
    return made


def make_converter(name: str, handler: Function, cast_pointer: Callable[[Any, Any], tuple[Any, Any]]) -> Function:
    """Makes the function that converts the arguments of one command as the package's own `_callApi` does before C.

    None becomes NULL, Python lists, strings and structs by value become pointers (`cast_pointer` is the package's own
    function for that, and returns what must stay alive); then `handler` is called. Pointers to something else, and
    counts that are none, are refused as cffi refuses them, before anybody reads memory by them. A float is rounded as
    C gets it.
    """
    ffi = layout.package_ffi()
    names: dict[str, Any] = {
        "handler": handler, "NULL": ffi.NULL, "CData": ffi.CData, "typeof": ffi.typeof, "cast_pointer": cast_pointer,
        "new": uncritical(ffi.new),
    }  # fmt: skip
    for i, kind in enumerate(layout.prototype(name).args):
        names[f"C{i}"], names[f"P{i}"] = kind, ffi.typeof(ffi.getctype(kind, "*"))
    exec(_converter_code(name), names)
    made: Function = names["convert"]
    return made


@cache
def _converter_code(name: str) -> CodeType:
    """The code of a command's converter: the same for every session."""
    arguments = layout.prototype(name).args
    listed = ", ".join(f"a{i}" for i in range(len(arguments)))
    lines = [f"def convert({listed}):"]
    counts = _counts(name)
    for i, kind in enumerate(arguments):
        lines.append(f"    if a{i} is None: a{i} = NULL")
        if kind.kind == "pointer":
            lines.append(f"    elif not isinstance(a{i}, CData) or typeof(a{i}) is not C{i}:")
            lines.append(f"        a{i}, k{i} = cast_pointer(a{i}, C{i})")
            if kind.item.kind != "void":  # what points at anything else must not be read
                lines.append(f"        if getattr(typeof(a{i}), 'item', None) is not C{i}.item: new(P{i}, a{i})")
        elif kind.cname == "float":
            lines.append(f"    else: a{i} = new(P{i}, a{i})[0]")
        else:  # asked for its number here, where the program's own code may run
            beyond = f" or a{i} >> {8 * layout.package_ffi().sizeof(kind)}" if i in counts else ""
            lines.append(f"    elif type(a{i}) is not int{beyond}: a{i} = new(P{i}, a{i})[0]")
    lines.append(f"    return handler({listed})")
    return compile("\n".join(lines), f"{GENERATED}{name} arguments>", "exec")


def _counts(name: str) -> set[int]:
    """The parameters by which the lengths of others are known."""
    shape = signature(name)
    params = () if shape is None else shape.params
    lengths = {each.length[1] if isinstance(each.length, tuple) else each.length for each in params}
    return {i for i, each in enumerate(params) if each.name in lengths and not each.pointer}
