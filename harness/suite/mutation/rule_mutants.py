"""Mutants of the judges: one condition or one update of a function of syncval or of the model is disabled.

A rule of a judge is a function that decides. Its mutants are made from its source: a condition holds always or never, a
part of an `and` or `or` is left out, an update is not done. `import_mutated` puts a mutant in the place of its module.

>>> from harness.suite.mutation.rule_mutants import rule_mutants
>>> some = [each for each in rule_mutants() if each.rule == "harness.syncval.race:race"]
>>> some[0].change.endswith(("always", "never", "left out", "not done"))
True
"""

from __future__ import annotations

import ast
import importlib
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_loader
from pathlib import Path
from types import ModuleType

import harness

ROOT = Path(harness.__file__).parent
JUDGES = ("syncval", "model")
NO_RULES = {"harness.model.caches", "harness.model.explanation"}
"""Modules of the judges that remark on a verdict or explain it, and decide nothing."""
EQUIVALENT = {
    "harness.syncval.evidence:Reporter.recorded_events": "whether a recording or its submit has the finding",
    "harness.syncval.evidence:Reporter._finding": "what a finding says of the dependency that is missing",
    "harness.syncval.evidence:_so_far": "what a finding says of the dependency that is missing",
    "harness.syncval.host:Host.is_unseen": "what the summary says the host was never shown; no finding",
    "harness.syncval.host:Host.__init__": "what need not be remembered",
}
"""Functions of which no change is noticed, because none changes what is found in a stream; each with the reason."""


@dataclass(frozen=True, slots=True)
class RuleMutant:
    """One change of one function of a judge."""

    module: str
    """Dotted name, such as `harness.syncval.race`."""
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
    def rule(self) -> str:
        """The function whose mutant it is."""
        return f"{self.module}:{self.function}"

    def __str__(self) -> str:
        return f"{self.module.removeprefix('harness.')}:{self.line} {self.function}: {self.change}"


Change = tuple[int, str, Callable[[], None]]
"""Line, words, and what makes the change in the tree."""


def rule_mutants() -> list[RuleMutant]:
    """Every mutant of every function of both judges, in the order of the source."""
    found = []
    for judge in JUDGES:
        for path in sorted((ROOT / judge).rglob("*.py")):
            module = module_of(path)
            for name, function in () if module in NO_RULES else _functions(_tree(module)):
                for number, (line, change, _) in enumerate(_changes(function)):
                    found.append(RuleMutant(module, name, number, line, change))
    return found


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
    return ".".join(("harness", *file.relative_to(ROOT).with_suffix("").parts)).removesuffix(".__init__")


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
    out."""
    known: set[str] = set()
    for each in tree.body:
        if isinstance(each, ast.ClassDef):
            yield from _functions(each, f"{each.name}.")
        elif isinstance(each, ast.FunctionDef) and each.name not in known:
            known.add(each.name)
            yield prefix + each.name, each


def _changes(function: ast.FunctionDef) -> Iterator[Change]:
    """The changes of a function. Conditions whose branch only raises are about bad use, not about a rule."""
    for node in ast.walk(function):
        if isinstance(node, ast.IfExp) or (isinstance(node, ast.If) and not _only_raises(node)):
            yield from _forced(node, "test", "if")
        elif isinstance(node, ast.Return) and isinstance(node.value, ast.BoolOp | ast.Compare | ast.UnaryOp):
            yield from _forced(node, "value", "return")
        elif isinstance(node, ast.BoolOp):
            yield from _without_parts(node)
        elif isinstance(node, ast.comprehension):
            for at, condition in enumerate(node.ifs):
                yield condition.lineno, f"`if {ast.unparse(condition)}` always", _deletion(node.ifs, at)
        for body in (getattr(node, "body", []), getattr(node, "orelse", [])):
            yield from _updates(body)


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


def _updates(body: object) -> Iterator[Change]:
    if not isinstance(body, list):
        return
    for at, each in enumerate(body):
        if isinstance(each, ast.AugAssign):

            def make(at: int = at, each: ast.AugAssign = each) -> None:
                body[at] = ast.copy_location(ast.Pass(), each)

            yield each.lineno, f"`{ast.unparse(each)}` not done", make


def _deletion(of: list[ast.expr], at: int) -> Callable[[], None]:
    def make() -> None:
        del of[at]

    return make
