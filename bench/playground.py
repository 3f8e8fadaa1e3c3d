"""What the playground of the documentation site takes before its first answer, and for a later one.

Node runs the Pyodide and the judges that the browser runs; processor time, since other work may run beside it. The
second line is the same with modules that are not compiled before.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

from ci import build_playground

SCRIPT = Path(__file__).with_suffix(".mjs")
BUILT = build_playground.BUILT
PARTS = ("Pyodide", "unpack", "import", "first", "cold", "later")


def main() -> None:
    """Prints the table."""
    build_playground.build(BUILT)
    print(f"{'CPU ms':14}{''.join(f'{each:>8}' for each in PARTS)}")
    for name, archive in (("as it is", BUILT / build_playground.JUDGES), ("sources", build_playground.SOURCES)):
        command = ["node", str(SCRIPT), str(BUILT), str(archive)]
        line = subprocess.run(command, check=True, capture_output=True, text=True).stdout.rstrip()
        print(f"{name:14}{line}")
    for name in (build_playground.JUDGES, "pyodide.asm.wasm", "python_stdlib.zip", "pyodide.asm.mjs"):
        print(f"{name:20} {(BUILT / name).stat().st_size / 1e6:5.1f} MB")


if __name__ == "__main__":
    main()
