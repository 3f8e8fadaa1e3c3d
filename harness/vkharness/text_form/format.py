"""The canonical form of a text: one blank between words, names in one order, full ranges without numbers."""

from __future__ import annotations

from vkharness.text_form.stream_text import parse, spell
from vkharness.text_form.text_lines import COMMENT


def canonical(text: str) -> str:
    """The same stream as `spell` writes it, with the comments and the empty lines of the text, one at a time. Raises
    `TextError`.

    >>> print(canonical("# why\\nsubmit   q1\\n  COPY_TRANSFER_READ a[0:64]"))
    # why
    submit q1
        COPY_TRANSFER_READ a
    <BLANKLINE>
    """
    spelled = iter(spell(parse(text)).splitlines())
    lines: list[str] = []
    for line in text.strip().split("\n"):
        said = line.strip()
        if said and not said.startswith(COMMENT):
            lines.append(next(spelled))
        elif said:
            lines.append(("    " if line[:1].isspace() else "") + said)
        elif lines and lines[-1]:
            lines.append("")
    lines += spelled
    return "\n".join(lines) + "\n" if lines else ""
