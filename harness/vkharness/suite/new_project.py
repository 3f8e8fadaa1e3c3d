"""A project with one scenario: the files that `vkharness init` writes."""

from __future__ import annotations

from pathlib import Path

from vkharness.findings import UserError
from vkharness.whole_file import replacing

TEMPLATE = Path(__file__).resolve().with_name("project")
DOTTED = ("github", "gitlab-ci.yml", "gitignore")
"""Names at the top of the template that begin with a dot in a project. Tools would act on them here, too."""
LEFT_OUT = "__pycache__"


def make_project(folder: Path) -> list[Path]:
    """Writes the project into `folder`, which may exist, and returns its files.

    Raises UserError, and writes nothing, where one of them is there already. Where some of them are there as they would
    be written, an earlier call was killed, and this one writes the others.
    """
    wanted = {}
    for source in sorted(path for path in TEMPLATE.rglob("*") if path.is_file() and LEFT_OUT not in path.parts):
        first, *rest = source.relative_to(TEMPLATE).parts
        wanted[folder.joinpath(f".{first}" if first in DOTTED else first, *rest)] = source
    there = [target for target in wanted if target.exists() or target.is_symlink()]
    if len(there) == len(wanted) or not all(_is_copy(target, wanted[target]) for target in there):
        raise UserError(f"{', '.join(map(str, there))}: there already; nothing was written")
    try:
        for target, source in wanted.items():
            target.parent.mkdir(parents=True, exist_ok=True)
            with replacing(target) as part:
                part.write_bytes(source.read_bytes())
    except OSError as error:
        raise UserError(f"{error.filename}: {error.strerror}") from None
    return list(wanted)


def _is_copy(target: Path, source: Path) -> bool:
    return target.is_file() and not target.is_symlink() and target.read_bytes() == source.read_bytes()
