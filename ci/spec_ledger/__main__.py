"""Keeps the ledger of the specification: each sentence that fixes an access, an order or a scope, with what judges it.

ci/ledger SPEC          reads a checkout of Vulkan-Docs, binds what it says by ci/spec_ledger/bindings.toml, and writes
                        ci/spec_ledger/ledger.tsv and docs/specification.md; prints what is new, changed or gone, and
                        exits 1 when something is bound to nothing (then it writes neither)
ci/ledger --check SPEC  writes nothing; exits 1 for a sentence that is new, changed, gone or unbound, for a binding that
                        binds nothing, and for one whose target does not exist
ci/ledger --page        writes docs/specification.md of the ledger that is there; needs no checkout
ci/ledger --read SPEC GLOB
                        prints what is found in sections that fit, as `chapter/section`, with its target

SPEC is kept out of the repository. Its version is that of xml/vk.xml; its commit is asked of git, or given as --commit.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from fnmatch import fnmatchcase
from pathlib import Path

from ci.spec_ledger.ledger import OURS, Bindings, Files, Found, Ledger, compare, extract, unique
from ci.spec_ledger.page import missing, page
from ci.spec_ledger.registry import Registry


def read_checkout(checkout: Path, files: Files) -> tuple[list[Found], Bindings]:
    """Reads a checkout: its bound sentences, and the bindings with how often each was used. Exits 2 for no checkout."""
    if not (checkout / "chapters").is_dir() or not (checkout / "xml" / "vk.xml").is_file():
        print(f"ledger: {checkout} is no checkout of Vulkan-Docs: it has no chapters/ and xml/vk.xml", file=sys.stderr)
        raise SystemExit(2)
    bound = Bindings.read(files.bindings)
    return list(bound.bind(unique(extract(checkout, bound)))), bound


def complaints(found: list[Found], bound: Bindings, idle: bool = True) -> list[str]:
    """Lists sentences bound to nothing, or to targets that do not exist; `idle`: also the lines that bind nothing."""
    said = [f"unbound: {each.entry.place} ({each.entry.found}): {each.text}" for each in found if not each.entry.target]
    said += [
        f"binds nothing: {line.chapter}: {line.section} -> {line.target}"
        for line in bound.lines
        if idle and not line.used
    ]
    return [*said, *missing({line.target for line in bound.lines}, bound)]


def check(checkout: Path, files: Files = OURS) -> list[str]:
    """How a checkout differs from the ledger, a line each."""
    found, bound = read_checkout(checkout, files)
    known = Ledger.read(files.ledger)
    said = [str(each) for each in compare(known, found)]
    said += complaints(found, bound, idle=not said)
    targets = {each[:3]: each.target for each in known.entries}
    for each in found:
        before = targets.get(each.entry[:3], each.entry.target)
        if each.entry.target and before != each.entry.target:
            said.append(f"bound anew: {each.entry.place}: {before} -> {each.entry.target}; run ci/ledger SPEC")
    return said


def write(checkout: Path, commit: str = "", files: Files = OURS) -> list[str]:
    """Writes the ledger and the page. A line for each reason why it does not."""
    found, bound = read_checkout(checkout, files)
    targets = {each.entry[:3]: each.entry.target for each in found}
    for each in compare(Ledger.read(files.ledger), found) if files.ledger.exists() else ():
        print(f"{each}\n    -> {targets.get(each.entry[:3], '')}")
    said = complaints(found, bound)
    commit = commit or commit_of(checkout)
    if not commit:
        said.append("--commit is missing, and git knows no commit of the checkout")
    if not said:
        made = Ledger(Registry(checkout / "xml" / "vk.xml").version(), commit, [each.entry for each in found])
        made.write(files.ledger)
        write_page(files)
    return said


def write_page(files: Files = OURS) -> None:
    """Writes the page of the ledger that is there."""
    files.page.write_text(page(Ledger.read(files.ledger), Bindings.read(files.bindings)), encoding="utf-8")


def read(checkout: Path, glob: str) -> None:
    """Prints what is found in sections that fit."""
    for entry, text in read_checkout(checkout, OURS)[0]:
        if fnmatchcase(entry.place, glob):
            print(f"{entry.place} -> {entry.target or 'UNBOUND'} ({entry.found})\n    {text}")


def commit_of(checkout: Path) -> str:
    """The commit of a checkout, empty where git knows none."""
    asked = subprocess.run(["git", "-C", checkout, "rev-parse", "HEAD"], capture_output=True, text=True, check=False)
    top = subprocess.run(
        ["git", "-C", checkout, "rev-parse", "--show-prefix"], capture_output=True, text=True, check=False
    )
    return asked.stdout.strip() if asked.returncode == 0 and not top.stdout.strip() else ""


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("spec", nargs="?", type=Path)
    parser.add_argument("glob", nargs="?", default="*")
    parser.add_argument("--commit", default="")
    for name in ("--check", "--page", "--read"):
        parser.add_argument(name, action="store_true")
    options = parser.parse_args()
    if options.page:
        write_page()
        return 0
    if options.spec is None:
        parser.error("SPEC is missing")
    if options.read:
        read(options.spec, options.glob)
        return 0
    said = check(options.spec) if options.check else write(options.spec, options.commit)
    print("\n".join([*said, f"{len(said)} complaints; the ledger knows {Ledger.read(OURS.ledger).version}"]))
    return int(bool(said))


if __name__ == "__main__":
    sys.exit(main())
