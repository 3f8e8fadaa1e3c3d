"""The ledger: what a checkout of the specification says about accesses, order and scopes, and what each is bound to.

`bindings.toml` is written by hand. `ledger.tsv` is written by `ci/ledger`: of each sentence its place, its hash and the
words that it was found by, so that a later checkout can be compared with it.
"""

from __future__ import annotations

import hashlib
import re
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import NamedTuple

from ci.spec_ledger.asciidoc import Sources, sentences
from ci.spec_ledger.patterns import matches
from ci.spec_ledger.registry import Registry

ROOT = Path(__file__).resolve().parents[2]
KINDS = ("rule", "test", "gap", "not")
COLUMNS = ("chapter", "section", "hash", "core", "found", "words", "target")
REGISTRY = "registry"
"""The chapter that the registry's records stand in."""


class Files(NamedTuple):
    """Where the ledger is kept."""

    bindings: Path
    """Written by hand."""
    ledger: Path
    page: Path


OURS = Files(
    ROOT / "ci" / "spec_ledger" / "bindings.toml",
    ROOT / "ci" / "spec_ledger" / "ledger.tsv",
    ROOT / "docs" / "specification.md",
)


class Entry(NamedTuple):
    """One sentence, or one record of the registry."""

    chapter: str
    section: str
    hash: str
    core: bool
    """It is there in Vulkan 1.4 without any extension."""
    found: str
    """The patterns that found it."""
    words: str
    """The words that the first pattern found."""
    target: str = ""
    """`kind name`, as a binding says it; empty: unbound."""

    @property
    def place(self) -> str:
        """As `chapter/section`."""
        return f"{self.chapter}/{self.section}"


class Found(NamedTuple):
    """An entry with its text, which is never kept."""

    entry: Entry
    text: str


@dataclass
class Binding:
    """One line of `bindings.toml`: sections of a chapter, words to look for, a target."""

    chapter: str
    section: str
    words: re.Pattern[str] | None
    target: str
    used: int = 0

    def binds(self, found: Found) -> bool:
        """Whether it is about this sentence."""
        entry = found.entry
        named = fnmatchcase(entry.chapter, self.chapter) and fnmatchcase(entry.section, self.section)
        return named and (self.words is None or self.words.search(found.text) is not None)


@dataclass(frozen=True)
class Bindings:
    """`bindings.toml`: the chapters of extensions, the reasons of what is no access and no order, and the lines."""

    extension_chapters: tuple[str, ...]
    reasons: dict[str, str]
    lines: tuple[Binding, ...]

    @classmethod
    def read(cls, path: Path) -> Bindings:
        """Raises ValueError for a line that names no target."""
        value = tomllib.loads(path.read_text(encoding="utf-8"))
        made = []
        for chapter, lines in value["bind"].items():
            for line in lines:
                section, words, target = line
                if target.partition(" ")[0] not in KINDS:
                    raise ValueError(f"{path.name}: {chapter}: {line}: a target is one of {KINDS} and a name")
                if isinstance(words, list):  # names
                    words = rf"\b(?:{'|'.join(map(re.escape, words))})$"
                made.append(Binding(chapter, section, re.compile(words, re.IGNORECASE) if words else None, target))
        return cls(tuple(value["extension_chapters"]), value["reasons"], tuple(made))

    def bind(self, found: Iterable[Found]) -> Iterator[Found]:
        """Each sentence with the target of the first line that is about it."""
        for each in found:
            line = next((line for line in self.lines if line.binds(each)), None)
            if line is not None:
                line.used += 1
            yield each._replace(entry=each.entry._replace(target=line.target if line else ""))


@dataclass
class Ledger:
    """The entries of one version of the specification."""

    version: str
    commit: str
    entries: list[Entry] = field(default_factory=list)

    @classmethod
    def read(cls, path: Path) -> Ledger:
        """Raises ValueError for a file that is no ledger."""
        head, columns, *lines = path.read_text(encoding="utf-8").splitlines()
        found = re.fullmatch(r"# Vulkan (\S+), commit (\S+)", head)
        if found is None or tuple(columns.split("\t")) != COLUMNS:
            raise ValueError(f"{path} is no ledger")
        rows = [line.split("\t") for line in lines]
        made = [Entry(row[0], row[1], row[2], row[3] == "core", row[4], row[5], row[6]) for row in rows]
        return cls(found[1], found[2], made)

    def write(self, path: Path) -> None:
        """Writes it whole."""
        rows = [[*each[:3], "core" if each.core else "", *each[4:]] for each in self.entries]
        lines = [
            f"# Vulkan {self.version}, commit {self.commit}",
            "\t".join(COLUMNS),
            *("\t".join(row) for row in rows),
        ]
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")

    def counts(self, chapter: str | None = None, core: bool = False) -> Counter[str]:
        """How many entries each kind of target has, of a chapter or of all."""
        chosen = (each for each in self.entries if chapter in (None, each.chapter) and (each.core or not core))
        return Counter(each.target.partition(" ")[0] for each in chosen)


def hash_of(text: str) -> str:
    """Ten digits that change with the words of a sentence, and not with its markup or its line ends."""
    return hashlib.sha256(text.encode()).hexdigest()[:10]


def extract(checkout: Path, bound: Bindings) -> Iterator[Found]:
    """Yields the sentences of a checkout that the patterns find, in its order. Raises OSError where it is none."""
    for folder, keep in (("chapters", None), ("appendices", "memorymodel.adoc")):
        root = checkout / folder
        files = {
            path.relative_to(root).as_posix(): path.read_text(encoding="utf-8")
            for path in sorted(root.rglob("*.adoc"))
            if keep in (None, path.name)
        }
        sources = Sources(files)
        for name in sources.chapters():
            chapter = name.removesuffix(".adoc") if folder == "chapters" else f"{folder}/{name.removesuffix('.adoc')}"
            core = not any(fnmatchcase(chapter, pattern) for pattern in bound.extension_chapters)
            for each in sentences(chapter, sources.lines(name, core)):
                hits = matches(each.text, each.usage)
                if hits:
                    names = ",".join(name for name, _ in hits)
                    yield Found(
                        Entry(chapter, each.section, hash_of(each.text), each.core, names, _cited(hits[0][1])),
                        each.text,
                    )
    for record in Registry(checkout / "xml" / "vk.xml").records():
        kind, _, name = record.section.partition(" ")
        yield Found(Entry(REGISTRY, record.section, hash_of(record.text), record.core, kind, name), record.section)


def _cited(words: str) -> str:
    """At most six words, for whoever looks for the sentence."""
    parts = words.split()
    return " ".join(parts) if len(parts) <= 6 else " ".join((*parts[:3], "...", *parts[-2:]))


def unique(found: Iterable[Found]) -> Iterator[Found]:
    """Each sentence of a section once."""
    seen = set()
    for each in found:
        key = each.entry[:3]
        if key not in seen:
            seen.add(key)
            yield each


class Complaint(NamedTuple):
    """Why a checkout does not fit the ledger."""

    what: str
    entry: Entry
    text: str = ""

    def __str__(self) -> str:
        return f"{self.what}: {self.entry.place} ({self.entry.found}: {self.entry.words!r}) {self.text}".rstrip()


def compare(ledger: Ledger, found: Sequence[Found]) -> list[Complaint]:
    """Lists what is new, changed or gone since the ledger was written. One sentence that changed is one complaint."""
    known = {each[:3] for each in ledger.entries}
    there = {each.entry[:3] for each in found}
    new: dict[tuple[str, str], list[Found]] = defaultdict(list)
    for each in found:
        if each.entry[:3] not in known:
            new[each.entry[:2]].append(each)
    complaints = []
    for old in ledger.entries:
        if old[:3] not in there:
            waiting = new[old[:2]]
            if waiting:
                now = waiting.pop(0)
                complaints.append(Complaint("changed", now.entry, now.text))
            else:
                complaints.append(Complaint("gone", old))
    complaints += [Complaint("new", each.entry, each.text) for rest in new.values() for each in rest]
    return complaints
