"""Mutants of the judges: one condition or one update of a function of syncval or of the model is disabled.

A rule of `docs/rules.md` is decided by the functions of a judge that cite it (`deciders`). The mutants of a function
are made from its source: a condition holds always or never, a part of an `and` or `or` is left out, an update is not
done (`x += y`, a call of which the value is not used, and `x._replace(y=z)`, which gives `x`). `import_mutated` puts a
mutant in the place of its module.

>>> from vkharness.suite.mutation.rule_mutants import rule_mutants
>>> some = [each for each in rule_mutants() if each.decider == "vkharness.syncval.race:race"]
>>> some[0].change.endswith(("always", "never", "left out", "not done"))
True
"""

from __future__ import annotations

import ast
import importlib
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_loader
from pathlib import Path
from types import ModuleType
from typing import Any

import vkharness

ROOT = Path(vkharness.__file__).parent
JUDGES = ("syncval", "model")
NO_RULES = {"vkharness.model.caches", "vkharness.model.explanation"}
"""Modules of the judges that remark on a verdict or explain it, and decide nothing."""
_MEMORY = "what need not be remembered: nothing later asks for it"
_SUMMARY = "what the summary says that the host was never shown; no finding"
_EXPLAINED = "what is said of a conflict, and not whether there is one"
_UNKNOWN = "a verdict that is not known is no finding"
EQUIVALENT = {
    "vkharness.syncval.evidence:Reporter.recorded_events": "whether a recording or its submit has the finding",
    "vkharness.syncval.evidence:Reporter._finding": _EXPLAINED,
    "vkharness.syncval.evidence:_so_far": _EXPLAINED,
    "vkharness.syncval.host:Host.is_unseen": _SUMMARY,
    "vkharness.syncval.unseen_writes:UnseenWrites.unmapped": _SUMMARY,
    "vkharness.syncval.unseen_writes:UnseenWrites.all": _SUMMARY,
    "vkharness.syncval.validator:Validator.written": "which bytes a recorder need not compare",
    "vkharness.syncval.event:Events._drop": _MEMORY,
    "vkharness.syncval.journal:Log._drop": _MEMORY,
    "vkharness.syncval.journal:Journal.forget": _MEMORY,
    "vkharness.syncval.present:Presentation.forget": _MEMORY,
    "vkharness.syncval.present:Presentation.forget_fence": _MEMORY,
    "vkharness.syncval.tokens:Tokens.give": _MEMORY,
    "vkharness.syncval.tracked_ranges:TrackedRanges.sweep_retired": _MEMORY,
    "vkharness.model.command_buffer_run:CommandBufferRun.place": _EXPLAINED,
    "vkharness.model.opinion:Opinion.clean": _EXPLAINED,
    "vkharness.model.opinion:Opinion.first": _EXPLAINED,
    "vkharness.model.order:ExecutionOrder.path": _EXPLAINED,
    "vkharness.model.order:ExecutionOrder.chain": _EXPLAINED,
    "vkharness.model.visibility:VisibilityQuery.is_available": _EXPLAINED,
    "vkharness.model.program:Program.remove_dirty": "parts without addresses, which nothing meets",
    "vkharness.model.rules.action:unmodelled": _UNKNOWN,
    "vkharness.model.rules.action:inherited": _UNKNOWN,
    "vkharness.model.rules.host:ignored": _UNKNOWN,
    "vkharness.model.stages:_supported": "stages that a queue does not have: it runs nothing in them",
    "vkharness.model.stages:accesses_at": "accesses of stages that a wait does not hold back: it shows them nothing",
}
"""Functions of which no change is noticed, because none changes what is found in a stream; each with the reason."""


@dataclass(frozen=True, slots=True)
class RuleMutant:
    """One change of one function of a judge."""

    module: str
    """Dotted name, such as `vkharness.syncval.race`."""
    function: str
    """Name inside the module, such as `Context.apply`."""
    number: int
    """Which of the changes of the function, in the order of the source."""
    line: int
    change: str
    """The changed source, and what becomes of it."""

    @property
    def judge(self) -> str:
        """`syncval` or `model`."""
        return self.module.split(".")[1]

    @property
    def decider(self) -> str:
        """The function whose mutant it is, with its module."""
        return f"{self.module}:{self.function}"

    def __str__(self) -> str:
        return f"{self.module.removeprefix('vkharness.')}:{self.line} {self.function}: {self.change}"


CITATION = re.compile(r"\brules\.md#([\w-]+)")
Change = tuple[int, str, Callable[[], None]]
"""Line, words, and what makes the change in the tree."""


def rule_mutants() -> list[RuleMutant]:
    """Every mutant of every function of both judges, in the order of the source."""
    return mutants_of(_modules())


def mutants_of(modules: Iterable[str]) -> list[RuleMutant]:
    """Every mutant of every function of some modules, in the order of the source."""
    found = []
    for module in modules:
        for name, function in _functions(_tree(module)):
            for number, (line, change, _) in enumerate(_changes(function)):
                found.append(RuleMutant(module, name, number, line, change))
    return found


def _modules() -> list[str]:
    """The modules of both judges that decide."""
    files = (path for judge in JUDGES for path in sorted((ROOT / judge).rglob("*.py")))
    return [module for module in map(module_of, files) if module not in NO_RULES]


def deciders() -> dict[tuple[str, str], frozenset[str]]:
    """The functions that decide each rule of `docs/rules.md`, by its anchor and the judge: those whose docstrings cite
    it. In the place of one that has nothing to change stand the functions of its module that it names. A rule of which
    a judge has nothing to change is left out: the judge passes on what `vkharness.commands` decides."""
    found: dict[tuple[str, str], frozenset[str]] = {}
    for module in _modules():
        functions = dict(_functions(_tree(module)))
        for name, function in functions.items():
            for anchor in CITATION.findall(ast.get_docstring(function) or ""):
                key = anchor, module.split(".")[1]
                own = (f"{module}:{each}" for each in _changed_by(name, functions, set()))
                found[key] = found.get(key, frozenset()).union(own)
    return {key: functions for key, functions in found.items() if functions}


def _changed_by(name: str, functions: Mapping[str, ast.FunctionDef], seen: set[str]) -> Iterator[str]:
    """A function, or those it names if it has nothing to change."""
    seen.add(name)
    if next(_changes(functions[name]), None) is not None:
        yield name
        return
    names = {getattr(each, "attr", getattr(each, "id", "")) for each in ast.walk(functions[name])}
    for other in functions:
        if other not in seen and other.rpartition(".")[2] in names:
            yield from _changed_by(other, functions, seen)


def import_mutated(mutant: RuleMutant) -> None:
    """Imports the mutant in the place of its module. Modules that hold what the old one defined must be gone from
    `sys.modules` before, and the process should end after: nothing puts the old module back."""
    tree = _tree(mutant.module)
    _, _, make = list(_changes(dict(_functions(tree))[mutant.function]))[mutant.number]
    make()
    sys.meta_path.insert(0, _Finder(mutant.module, ast.fix_missing_locations(tree)))
    importlib.import_module(mutant.module)


class _Finder(MetaPathFinder, Loader):
    """Finds one module, whose tree is given."""

    def __init__(self, name: str, tree: ast.Module) -> None:
        self._name, self._tree = name, tree

    def find_spec(self, fullname: str, path: object, target: object = None) -> ModuleSpec | None:
        """The module's, for its name."""
        if fullname != self._name:
            return None
        file = _file(fullname)
        package = file.name == "__init__.py"
        return spec_from_loader(fullname, self, origin=str(file), is_package=package)

    def exec_module(self, module: ModuleType) -> None:
        """Runs the tree."""
        file = _file(self._name)
        module.__file__ = str(file)
        if file.name == "__init__.py":
            module.__path__ = [str(file.parent)]
        exec(compile(self._tree, str(file), "exec"), module.__dict__)


def module_of(file: Path) -> str:
    """The dotted name of a module of this package."""
    return ".".join(("vkharness", *file.relative_to(ROOT).with_suffix("").parts)).removesuffix(".__init__")


def _file(module: str) -> Path:
    path = ROOT.joinpath(*module.split(".")[1:])
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


@cache
def _source(module: str) -> str:
    return _file(module).read_text(encoding="utf-8")


def _tree(module: str) -> ast.Module:
    return ast.parse(_source(module))


def _functions(tree: ast.Module | ast.ClassDef, prefix: str = "") -> Iterator[tuple[str, ast.FunctionDef]]:
    """Functions of a module and methods of its classes, by name. A second one of a name, such as a setter, is left
    out, and `_check`, which asserts."""
    known: set[str] = set()
    for each in tree.body:
        if isinstance(each, ast.ClassDef):
            yield from _functions(each, f"{each.name}.")
        elif isinstance(each, ast.FunctionDef) and each.name not in known and each.name != "_check":
            known.add(each.name)
            yield prefix + each.name, each


def _changes(function: ast.FunctionDef) -> Iterator[Change]:
    """The changes of a function. Conditions whose branch only raises are about bad use, not about a rule."""
    for node in ast.walk(function):
        if isinstance(node, ast.IfExp) or (isinstance(node, ast.If) and not _only_raises(node)):
            yield from _forced(node, "test", "if")
        elif isinstance(node, ast.Return) and _is_condition(node.value):
            yield from _forced(node, "value", "return")
        elif isinstance(node, ast.BoolOp):
            yield from _without_parts(node)
        elif isinstance(node, ast.comprehension):
            for at, condition in enumerate(node.ifs):
                yield condition.lineno, f"`if {ast.unparse(condition)}` always", _deletion(node.ifs, at)
        for name, value in ast.iter_fields(node):
            yield from _updates(value) if isinstance(value, list) else _replacements(node, name, value)


def _is_condition(node: ast.expr | None) -> bool:
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Name) and node.func.id in ("bool", "any", "all")
    return isinstance(node, ast.BoolOp | ast.Compare | ast.UnaryOp)


def _only_raises(node: ast.If) -> bool:
    return all(isinstance(each, ast.Raise) for each in node.body)


def _forced(node: ast.AST, field: str, word: str) -> Iterator[Change]:
    old = getattr(node, field)
    for value, name in ((True, "always"), (False, "never")):

        def make(value: bool = value) -> None:
            setattr(node, field, ast.copy_location(ast.Constant(value), old))

        yield old.lineno, f"`{word} {ast.unparse(old)}` {name}", make


def _without_parts(node: ast.BoolOp) -> Iterator[Change]:
    neutral = ast.copy_location(ast.Constant(isinstance(node.op, ast.And)), node)
    for at, part in enumerate(node.values):

        def make(at: int = at) -> None:
            node.values[at : at + 1] = []
            node.values.insert(0, neutral)  # one part alone is no `and` and no `or`

        yield part.lineno, f"`{ast.unparse(part)}` left out", make


def _updates(several: list[object]) -> Iterator[Change]:
    """The changes of the statements of a body, and of the items of a list of expressions."""
    for at, each in enumerate(several):
        if isinstance(each, ast.AugAssign) or (isinstance(each, ast.Expr) and isinstance(each.value, ast.Call)):
            yield each.lineno, f"`{ast.unparse(each)}` not done", _placing(several, at, ast.Pass())
        elif (old := _replaced(each)) is not None:
            yield old.lineno, f"`{ast.unparse(old)}._replace` not done", _placing(several, at, old)


def _replacements(node: ast.AST, field: str, value: object) -> Iterator[Change]:
    old = _replaced(value)
    if old is not None:

        def make() -> None:
            setattr(node, field, old)

        yield old.lineno, f"`{ast.unparse(old)}._replace` not done", make


def _replaced(node: object) -> ast.expr | None:
    """The expression `x` where `node` is a call `x._replace(...)`; None for any other node."""
    function = node.func if isinstance(node, ast.Call) else None
    return function.value if isinstance(function, ast.Attribute) and function.attr == "_replace" else None


def _placing(of: list[Any], at: int, new: ast.AST) -> Callable[[], None]:
    def make() -> None:
        of[at] = ast.copy_location(new, of[at])

    return make


def _deletion(of: list[ast.expr], at: int) -> Callable[[], None]:
    def make() -> None:
        del of[at]

    return make
