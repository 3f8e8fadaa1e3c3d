"""Stream text: what it says, and that reading and writing are inverse."""

from __future__ import annotations

import pytest

from vkharness.fuzz import stream_text
from vkharness.fuzz.handle_names import number
from vkharness.trace.effects import Access, Barrier, HostWaited, Submitted

EVERYTHING = """\
semaphore t1 = 0
submit q1 wait s1@COPY, t1=3@CLEAR signal s2@ALL_COMMANDS family 2
    COPY_TRANSFER_READ a; COPY_TRANSFER_WRITE b[0:32]
    barrier COPY/TRANSFER_WRITE > COPY/TRANSFER_READ, a[0:32] CLEAR > COPY, i 1->7 COPY > CLEAR
    barrier region a family 0->1 NONE > COPY/TRANSFER_READ|TRANSFER_WRITE
    set e1 COPY/TRANSFER_WRITE > CLEAR/TRANSFER_WRITE
    set1 e2 COPY|CLEAR
    wait e1 COPY/TRANSFER_WRITE > CLEAR/TRANSFER_WRITE & e2 CLEAR > COPY
    wait1 e1 e2 COPY > CLEAR, i 0->2 CLEAR > COPY
    reset e1 COPY
    query reset y1[0:4]
    query begin y1[0:1]
    query end y1[0:1]
    query timestamp y2[3:4] COPY
    query copy y1[0:4]
    query copy-waiting y1[0:4]
    query copy-telling y1[0:4]
    pass 3 region 0->1 COPY > CLEAR, EXTERNAL->0 NONE > ALL_COMMANDS
    subpass 0 i 0->2, j 1->2
    COLOR_ATTACHMENT_OUTPUT_COLOR_ATTACHMENT_WRITE i color load
    COMPUTE_SHADER_SHADER_STORAGE_READ a atomic
    subpass 1
    subpass 2 i 2->1 after 0&1, j 2->1 used 0&2
    end i 1->7 after 2 used 0&1&2, j 2->7, k 0->1 after 0&1
    execute COPY_TRANSFER_READ a; COPY_TRANSFER_WRITE b / barrier COPY > CLEAR
next wait s2@COPY signal s3@CLEAR
    CLEAR_TRANSFER_WRITE b
next fence f1
submit q2
    COPY_TRANSFER_READ a
next fence f2
host waits
host waits q1
host waits f1 f2
host waits t1=4 t2=5
host signals t1=3
host sets e1
host resets e1
host destroys e1
host creates y1[0:4]
host resets y1[0:2]
host gets y1[0:2]
host destroys y1[0:0]
host copies to i
host copies from i[0:8]
host writes a[0:4]
host reads a
host flushes a
host invalidates a
host writes n incoherent
host reads n[0:8] incoherent
queue q2 family 1
acquire p signal s3 fence f2
acquire p fence f2
present q1 p wait s4 s5
present q1 p
"""


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
    "text", ["submit q1\n    NO_SUCH_ACCESS a", "submits q1", "host waits x1", "submit q1\n    barrier COPY COPY"]
)
def test_what_cannot_be_read_is_named(text: str) -> None:
    with pytest.raises(ValueError, match=text.split(maxsplit=1)[0]):
        stream_text.parse(text)
