"""Answers of a long run of the matrix or of mutants, kept as they come: a killed run goes on with what is left.

Each answer is a line `{"key": ..., "answer": {...}}` of a `vkharness.planned_file`, beside what was asked.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

from vkharness.findings import UserError
from vkharness.planned_file import Known, PlannedFile, PlannedWork

MATRIX = PlannedWork("vkharness matrix", 1, "matrix")
MUTATE = PlannedWork("vkharness mutate", 1, "run of mutants")

_Read = TypeVar("_Read")


class KeptAnswers:
    """The answers of one run, by key. Without a path they are kept in memory only."""

    def __init__(self, path: Path | None, work: PlannedWork, plan: dict[str, Any], *, resume: bool) -> None:
        """Begins a file, or goes on with it. Raises `UserError` where a file is there and not to be gone on with, or
        where it is of a run that asked for something else."""
        self.answers: dict[str, dict[str, Any]] = {}
        self._path = path
        self._stack = ExitStack()
        self._file: PlannedFile | None = None
        if resume and path is None:
            raise UserError("--resume needs the file of --out")

        def check(known: Known) -> None:
            if not resume:
                raise UserError(f"{path}: exists; --resume goes on with it")
            for name, value in plan.items():
                if known.plan.get(name) != value:
                    was = known.plan.get(name)
                    raise UserError(f"{path}: is of another run: {name} was {was!r} and is {value!r}")
            for number, line in enumerate(known.lines, 2):
                if not isinstance(line.get("key"), str) or not isinstance(line.get("answer"), dict):
                    raise work.trouble(Path(str(path)), number, "it has no key and answer")
                self.answers[line["key"]] = line["answer"]

        if path is not None:
            self._file = self._stack.enter_context(PlannedFile(path, work, plan, check))

    def read(self, key: str, parse: Callable[[dict[str, Any]], _Read]) -> _Read:
        """An answer as `parse` makes it of what is kept. Raises `UserError` where it is none."""
        try:
            return parse(self.answers[key])
        except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
            raise UserError(f"{self._path}: the answer for {key} is none: {type(error).__name__}: {error}") from None

    def keep(self, key: str, answer: dict[str, Any]) -> None:
        """Keeps an answer; it is on the disk when this returns."""
        if self._file is not None:
            self._file.append({"key": key, "answer": answer})
        self.answers[key] = answer

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()
