"""The source of a scenario for the page: its lines, cut into tokens, and which of them record a dependency."""

from __future__ import annotations

import ast
import io
import keyword
import tokenize
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

MOST_BYTES = 1 << 20
"""Of a source file that is read."""
AROUND = 3
"""Lines before and after a line of another function."""


def code_of(root: Path, name: str, line: int) -> dict[str, Any] | None:
    """`{"file", "lines", "dependencies"}` of the function in which `line` (from 1) of a file below `root` stands.

    `lines` are `[number, [[kind, text], ...]]`, the kinds `""`, `comment`, `string` and `keyword`; `dependencies` maps
    each name that is the first argument of a call to the lines of that call. None where there is no such function.
    """
    text = _read(root, name)
    try:
        function = None if text is None else _function_at(_parsed(text), line)
    except (SyntaxError, ValueError, RecursionError):
        return None
    if text is None or function is None:
        return None
    first = min([function.lineno, *(each.lineno for each in function.decorator_list)])
    coloured = _coloured(text)
    return {
        "file": name,
        "lines": [[number, coloured[number - 1]] for number in range(first, (function.end_lineno or first) + 1)],
        "dependencies": _dependencies(function),
    }


def excerpt(root: Path, name: str, line: int) -> dict[str, Any] | None:
    """The same of a line with those around it, in whatever function; without `dependencies`."""
    text = _read(root, name)
    if text is None or not 1 <= line <= text.count("\n") + 1:
        return None
    coloured = _coloured(text)
    lines = range(max(1, line - AROUND), min(len(coloured), line + AROUND) + 1)
    return {"file": name, "lines": [[number, coloured[number - 1]] for number in lines]}


def _read(root: Path, name: str) -> str | None:
    """The text of a Python file below `root`; None for any other file, and for what cannot be read."""
    try:
        path = (root / name).resolve()
        if path.suffix != ".py" or not path.is_relative_to(root.resolve()) or path.stat().st_size > MOST_BYTES:
            return None
        return path.read_text(encoding="utf-8")
    except (OSError, ValueError):
        return None


@lru_cache(8)
def _parsed(text: str) -> ast.Module:
    return ast.parse(text)


def _function_at(module: ast.Module, line: int) -> ast.FunctionDef | None:
    for node in module.body:
        if isinstance(node, ast.FunctionDef):
            first = min([node.lineno, *(each.lineno for each in node.decorator_list)])
            if first <= line <= (node.end_lineno or node.lineno):
                return node
    return None


def _dependencies(function: ast.FunctionDef) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for node in (each for statement in function.body for each in ast.walk(statement)):
        match node:
            case ast.Call(args=[ast.Constant(value=str() as name), *_], lineno=first, end_lineno=last):
                found.setdefault(name, []).extend(range(first, (last or first) + 1))
    return found


@lru_cache(8)  # a file has several scenarios, and those of a page come in the order of their files
def _coloured(text: str) -> list[list[list[str]]]:
    """Each line as `[kind, text]` pieces."""
    lines = text.split("\n")
    pieces: list[list[list[str]]] = [[] for _ in lines]
    done = [0] * len(lines)
    for kind, (row, column), (to_row, to_column) in _tokens(text):
        for at in range(row, to_row + 1):
            begin = column if at == row else 0
            end = to_column if at == to_row else len(lines[at])
            if begin > done[at]:
                pieces[at].append(["", lines[at][done[at] : begin]])
            pieces[at].append([kind, lines[at][begin:end]])
            done[at] = end
    for at, line in enumerate(lines):
        if done[at] < len(line):
            pieces[at].append(["", line[done[at] :]])
    return pieces


def _tokens(text: str) -> Iterator[tuple[str, tuple[int, int], tuple[int, int]]]:
    """(kind, begin, end) of comments, strings and keywords; rows from 0."""
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            is_keyword = token.type == tokenize.NAME and keyword.iskeyword(token.string)
            kind = "keyword" if is_keyword else _KINDS.get(token.type, "")
            if kind:
                yield kind, (token.start[0] - 1, token.start[1]), (token.end[0] - 1, token.end[1])
    except (tokenize.TokenError, SyntaxError):
        return


_KINDS = {tokenize.COMMENT: "comment", tokenize.STRING: "string"}
