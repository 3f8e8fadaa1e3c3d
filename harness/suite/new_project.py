"""A project with one scenario: the files that `vkharness init` writes."""

from __future__ import annotations

from pathlib import Path

from harness.findings import UserError

TEMPLATE = Path(__file__).resolve().with_name("project")
DOTTED = ("github", "gitlab-ci.yml", "gitignore")
"""Names at the top of the template that begin with a dot in a project. Tools would act on them here, too."""
LEFT_OUT = "__pycache__"


def make_project(folder: Path) -> list[Path]:
    """Writes the project into `folder`, which may exist, and returns its files.

    Raises UserError, and writes nothing, where one of them is there already.
    """
    wanted = {}
    for source in sorted(path for path in TEMPLATE.rglob("*") if path.is_file() and LEFT_OUT not in path.parts):
        first, *rest = source.relative_to(TEMPLATE).parts
        wanted[folder.joinpath(f".{first}" if first in DOTTED else first, *rest)] = source
    there = [str(target) for target in wanted if target.exists() or target.is_symlink()]
    if there:
        raise UserError(f"{', '.join(there)}: there already; nothing was written")
    try:
        for target, source in wanted.items():
            target.parent.mkdir(parents=True, exist_ok=True)
            with target.open("xb") as file:
                file.write(source.read_bytes())
    except OSError as error:
        raise UserError(f"{error.filename}: {error.strerror}") from None
    return list(wanted)
