"""Stream text: what it says, and that reading and writing are inverse."""

from __future__ import annotations

from pathlib import Path

import pytest

from vkharness.text_form import stream_text
from vkharness.text_form.format import canonical
from vkharness.text_form.handle_names import name, number
from vkharness.text_form.unreadable import TextError
from vkharness.trace.effects import Access, Barrier, HostWaited, Submitted

EVERYTHING = (Path(__file__).parents[1] / "data" / "stream_text" / "everything.txt").read_text()


def test_spelling_what_was_read_gives_the_text_back() -> None:
    assert stream_text.spell(stream_text.parse(EVERYTHING)) == EVERYTHING
    assert stream_text.parse(stream_text.spell(stream_text.parse(EVERYTHING))) == stream_text.parse(EVERYTHING)


def test_what_a_text_says() -> None:
    submitted, waited = stream_text.parse("""
        submit q1
            COPY_TRANSFER_READ a[8:16]
            barrier a[0:8] COPY/TRANSFER_WRITE > CLEAR
        host waits
    """)
    assert waited == HostWaited()
    assert isinstance(submitted, Submitted)
    ((_, (read, barrier)),) = submitted.batches[0].buffers
    (access,) = read.effects
    assert isinstance(access, Access)
    assert (access.spans, access.resource) == (((8, 16),), number("a"))
    (ranged,) = barrier.effects
    assert isinstance(ranged, Barrier)
    assert len(ranged.ranges) == 1
    assert [each.dst_accesses for each in ranged.globals] == [0], "a range barrier orders everything's execution"


@pytest.mark.parametrize(
    ("text", "line", "column", "why"),
    [
        ("submit q1\n    NO_SUCH_ACCESS a", 2, 5, "'NO_SUCH_ACCESS' is no command and no access"),
        ("submits q1", 1, 1, "'submits q1' is no event of a stream: did you mean submit?"),
        ("host waits x1", 1, 12, "'x1' is no name"),
        ("# why\n\nsubmit q1\n    barrier COPY COPY", 4, 13, "'COPY COPY' is no dependency: SCOPE > SCOPE"),
        ("submit q1\n  barrier COPY|CLAER > COPY", 2, 16, "'CLAER' is no stage: did you mean CLEAR?"),
        ("submit q1\n  barrier COPY/X > COPY", 2, 16, "'X' is no access"),
        ("submit q1\n  COPY_TRANSFER_READ a[5:2]", 2, 22, "an end that does not come after its begin"),
        ("submit q1\n  COPY_TRANSFER_RAED a; foo", 2, 3, "did you mean COPY_TRANSFER_READ?"),
        ("submit q1\n  barrier i UNDEFINED->GENERL COPY > COPY", 2, 24, "is no layout: did you mean GENERAL?"),
        ("submit q1\n  COPY_TRANSFER_READ", 2, 3, "of which resource?"),
        ("submit q1\n  COPY_TRANSFER_READ a atomik", 2, 24, "did you mean atomic?"),
        ("acquire p\n  COPY_TRANSFER_READ a", 1, 1, "commands stand below `submit`"),
        ("next", 1, 1, "no submit before it"),
        ("submit q1 waits s1@COPY", 1, 11, "behind a queue stand"),
        ("submit q1\n  pass 2000", 2, 8, "no number from 0 to 64"),
        ("submit q9999", 1, 8, "is no name"),
        ("semaphore t1 = \u0661", 1, 16, "is no number"),
        ("submit q1\n  wait e1", 2, 3, "is not as the grammar has it"),
        ("submit q1\n  execute execute COPY_TRANSFER_READ a", 2, 3, "executes none"),
    ],
)
def test_what_cannot_be_read_is_named_with_its_place(text: str, line: int, column: int, why: str) -> None:
    with pytest.raises(TextError) as raised:
        stream_text.parse(text)
    assert (raised.value.line, raised.value.column) == (line, column)
    assert why in raised.value.why
    assert "\n" not in str(raised.value)


def test_a_command_has_the_name_that_is_given_and_its_line_as_its_site() -> None:
    text = "submit q1\n    vkCmdCopyBuffer: COPY_TRANSFER_READ a[0:8+16:24]; COPY_TRANSFER_WRITE r0\n"
    (submitted,) = stream_text.parse(text, "s.txt")
    assert isinstance(submitted, Submitted)
    ((_, (copy,)),) = submitted.batches[0].buffers
    assert (copy.name, copy.site) == ("vkCmdCopyBuffer", "s.txt:2")
    read, write = copy.effects
    assert isinstance(read, Access) and isinstance(write, Access)
    assert (read.spans, write.resource) == (((0, 8), (16, 24)), number("r0"))
    assert stream_text.spell([submitted]) == text


def test_every_resource_has_a_name() -> None:
    names = [*map(chr, range(ord("a"), ord("z") + 1)), *(f"r{at}" for at in range(874))]
    assert [name(number(each)) for each in names] == names
    assert len(set(map(number, names))) == len(names)


def test_a_text_that_is_too_long_is_refused() -> None:
    with pytest.raises(TextError, match="at most 1 MiB"):
        stream_text.parse("#" * (1 << 21))


def test_the_canonical_form_keeps_comments_and_is_its_own() -> None:
    given = "\n\n# why\nsubmit   q1\n  # no barrier\n  COPY_TRANSFER_READ  a[0:64]\n\n\nhost waits  \n"
    text = "# why\nsubmit q1\n    # no barrier\n    COPY_TRANSFER_READ a\n\nhost waits\n"
    assert canonical(given) == text == canonical(text)
    assert canonical(EVERYTHING) == EVERYTHING


def test_a_layout_has_its_name_and_numbers_are_read_too() -> None:
    named = "submit q1\n    barrier i UNDEFINED->TRANSFER_DST_OPTIMAL NONE > COPY/TRANSFER_WRITE\n"
    assert canonical(named.replace("UNDEFINED->TRANSFER_DST_OPTIMAL", "0->7")) == named == canonical(named)
    assert "12345->GENERAL" in canonical("submit q1\n    barrier i 12345->1 COPY > COPY")


LINES = [(at, gap) for at, line in enumerate(EVERYTHING.splitlines()) for gap in range(len(line.split()) + 1)]


@pytest.mark.parametrize("junk", ["JUNK", "junk@COPY", "7"])
def test_a_word_that_nothing_reads_is_refused_at_each_place(junk: str) -> None:
    assert len(LINES) > 200
    taken = []
    for at, gap in LINES:
        lines = EVERYTHING.splitlines()
        margin, words = lines[at][: len(lines[at]) - len(lines[at].lstrip())], lines[at].split()
        lines[at] = margin + " ".join([*words[:gap], junk, *words[gap:]])
        try:
            stream_text.parse("\n".join(lines))
        except TextError:
            continue
        taken.append(lines[at])
    assert taken == []


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("submit q2 wait s1@COPY wait s2@COPY", "wait"),
        ("submit q2 wait s1", "s1"),
        ("submit q2 wait s1@COPY/TRANSFER_READ", "COPY/TRANSFER_READ"),
        ("submit q2 wait", "wait"),
        ("submit q2 wait t1=@COPY", ""),
        ("submit q1 fence f1 f2", "f2"),
        ("submit q1 fence f1\nnext fence f2", "fence"),
        ("submit q1\nnext family 3", "family"),
        ("host writes a incoherrent", "incoherrent"),
        ("host waits q1 f2", "q1"),
        ("host waits f1 s2", "s2"),
        ("acquire p foo", "foo"),
        ("acquire p signal", "signal"),
        ("present q1 p s4 s5", "s4"),
        ("submit q1\n  barrier a UNDEFINED>GENERAL COPY > COPY", "UNDEFINED>GENERAL"),
        ("submit q1\n  barrier a family 0->1 traced stages COPY > COPY", "stages"),
        ("submit q1\n  set1 e1 COPY/TRANSFER_WRITE", "COPY/TRANSFER_WRITE"),
        ("submit q1\n  query reset y1[0:4] COPY JUNK", "JUNK"),
        ("submit q1\n  query copy y1[0:4] COPY", "COPY"),
        ("submit q1\n  rendering junk", "junk"),
        ("submit q1\n  pass 2 junk 0->1 COPY > COPY", "junk"),
        ("submit q1\n  COPY_TRANSFER_READ a atomic atomic", "atomic"),
        ("submit q1\n  binding COPY_TRANSFER_READ a atomic", "binding"),
        ("submit q1\n  vkCmdX: execute COPY_TRANSFER_READ a", "execute"),
    ],
)
def test_what_a_line_says_too_much_is_named(text: str, word: str) -> None:
    with pytest.raises(TextError) as raised:
        stream_text.parse(text)
    line = text.splitlines()[raised.value.line - 1]
    assert line[raised.value.column - 1 :].startswith(word)
    assert "did you mean execute" not in raised.value.why


def test_comments_alone_stay_as_they_are() -> None:
    assert canonical("# why\n") == "# why\n"
