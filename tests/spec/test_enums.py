"""Vulkan's constants are written once: in the module that the registry makes."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from vkharness.spec import enums

HARNESS = Path(enums.__file__).parents[1]
GENERATED = ("enums.py", "_generated.py", "_newer_types.py")
OURS = {
    ("fuzz/random_rendering.py", "DEPTH"): "the number of an image",
    ("shader/lanes/image_steps.py", "CUBE"): "a dimension of SPIR-V",
}
"""Numbers of our own under a name that Vulkan gives the same number, each with what it is."""
EXTENSIONS = range(1_000_000_000, 1_001_000_000)
"""Values that enumerants of extensions have (Vulkan's style guide, "Assigning Extension Token Values")."""


def known() -> set[tuple[str, int]]:
    """(name, value) of each member and each constant without VK_."""
    held = vars(enums)
    members = {pair for one in held.values() if isinstance(one, type) for pair in vars(one).items()}
    constants = {(name.removeprefix("VK_"), value) for name, value in held.items() if name.startswith("VK_")}
    return {(name, value) for name, value in members | constants if type(value) is int}


def literals(tree: ast.Module) -> Iterator[tuple[str, ast.expr]]:
    """(name, value) of each assignment to a name at the top of a module, those of tuples apart."""
    for node in (each for each in tree.body if isinstance(each, ast.Assign)):
        for target in node.targets:
            if isinstance(target, ast.Name):
                yield target.id, node.value
            elif isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
                pairs = zip(target.elts, node.value.elts, strict=True)
                yield from ((name.id, value) for name, value in pairs if isinstance(name, ast.Name))


def copied(tree: ast.Module) -> Iterator[str]:
    """Yields the numbers in a module that have a name in Vulkan."""
    names = known()
    for name, given in literals(tree):
        if isinstance(given, ast.Constant) and (name.strip("_"), given.value) in names:
            yield name
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and type(node.value) is int and node.value in EXTENSIONS:
            yield str(node.value)
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
            number = all(isinstance(each, ast.Constant) for each in (node.left, node.right))
            yield from [ast.unparse(node)] if number else []


def test_no_constant_of_vulkan_is_copied_by_hand() -> None:
    paths = [path for path in HARNESS.rglob("*.py") if path.name not in GENERATED]
    trees = {path.relative_to(HARNESS).as_posix(): ast.parse(path.read_text(encoding="utf-8")) for path in paths}
    assert {(name, each) for name, tree in trees.items() for each in copied(tree)} == set(OURS)


def test_a_copy_would_be_found() -> None:
    lines = "HOST, KEPT = 0x4000, 3", "_WHOLE_SIZE = 18446744073709551615", "HOST = -1", "f(1000314004, 0x800 | 0x1000)"
    assert set(copied(ast.parse("\n".join(lines)))) == {"HOST", "_WHOLE_SIZE", "1000314004", "2048 | 4096"}


def test_names_are_vulkans_and_values_are_plain_integers() -> None:
    assert enums.VkImageLayout.GENERAL == 1
    assert enums.VkPipelineStage2.COPY == 1 << 32
    assert enums.VkImageType.TYPE_2D == 1
    assert enums.VkPresentMode.FIFO == 2
    assert (enums.VK_WHOLE_SIZE, enums.VK_SUBPASS_EXTERNAL) == ((1 << 64) - 1, (1 << 32) - 1)
    assert {type(value) for _, value in known()} == {int}
