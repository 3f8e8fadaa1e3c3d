"""The picture of a partial order: what is in it, how much of a long one, and the files it becomes."""

from __future__ import annotations

import os
import random
import re
import subprocess
import sys
from itertools import combinations
from pathlib import Path
from typing import NoReturn
from xml.etree import ElementTree

import graphviz
import pytest
from click.testing import CliRunner

from tests.commands.test_debug_info import name, region
from tests.support.streams import struct, two_buffers
from tests.test_nearest_dependency import buffer_barrier
from vkharness.check import Analysis
from vkharness.cli.graph import graph
from vkharness.device.drivers import environment, find_driver
from vkharness.findings import UserError
from vkharness.fuzz import random_text
from vkharness.groups import groups_of
from vkharness.model import Opinion, judge, judge_stream_events
from vkharness.report.graph import RED, draw, write_graph
from vkharness.report.neighbourhood import MOST_NODES, part_of
from vkharness.report.order_svg import draw_svg, standalone
from vkharness.text_form import stream_text
from vkharness.trace.codec import load, save

RACE = """
submit q1
    CLEAR_TRANSFER_WRITE a
    barrier CLEAR/TRANSFER_WRITE > COMPUTE_SHADER/SHADER_STORAGE_READ
    COPY_TRANSFER_READ a
submit q2
    COPY_TRANSFER_READ b
"""


HOSTILE = Path(__file__).parents[1] / "data" / "hostile"
SVG = "{http://www.w3.org/2000/svg}"


def not_called() -> NoReturn:
    raise AssertionError("dot is installed")


def opinion_of(text: str) -> Opinion:
    return judge_stream_events(stream_text.parse(text))


def drawn(text: str, limit: int = 30) -> str:
    opinion = opinion_of(text)
    return draw(opinion, opinion.conflicts[0] if opinion.conflicts else None, limit)


@pytest.mark.parametrize("limit", [2, 30])
@pytest.mark.parametrize("seed", range(4))
def test_an_edge_is_drawn_where_no_other_node_that_is_drawn_lies_between(seed: int, limit: int) -> None:
    opinion = judge_stream_events(stream_text.parse(random_text.make(random.Random(seed).choice)))
    order, part = opinion.order, part_of(opinion, None, limit)
    nodes = [node for group in part.groups.values() for node in group]

    def lies_between(first: int, last: int) -> bool:
        return any(each in order.before[last] and first in order.before[each] for each in nodes)

    edges = [each for node in nodes for each in order.into(node) if each.first in nodes]
    assert edges
    wanted = [each for each in edges if not lies_between(each.first, each.second)]
    assert set(part.edges) == set(wanted)
    assert len(part.edges) == len(wanted)


def test_queues_are_columns_and_commands_boxes_with_their_stages() -> None:
    text = drawn(RACE)
    assert re.findall(r'label="?(queue \d+|host)', text) == ["queue 1001", "queue 1002"]
    assert text.count("<B>vkCmd") == 4
    assert "from CLEAR" in text
    assert "to COMPUTE_SHADER" in text


def test_the_ends_of_a_conflict_are_red_and_the_missing_edge_dashed() -> None:
    text = drawn(RACE)
    assert len(re.findall(f'COLOR="{RED}"', text)) == 2
    (missing,) = re.findall(r'label="(missing: [^"]*)"[^\]]*style=dashed', text)
    assert " ".join(missing.split()) == ("missing: a memory dependency from CLEAR/TRANSFER_WRITE to COPY/TRANSFER_READ")


def test_without_a_conflict_nothing_is_red() -> None:
    text = drawn("submit q1\n    CLEAR_TRANSFER_WRITE a\n")
    assert RED not in text
    assert "no conflict" in text


def test_of_a_long_trace_the_neighbourhood_is_drawn() -> None:
    many = "\n".join(f"    COPY_TRANSFER_READ {'b' if at % 2 else 'c'}" for at in range(100))
    text = drawn(f"submit q1\n{many}\n    CLEAR_TRANSFER_WRITE a\n    COPY_TRANSFER_READ a\n{many}\n", 10)
    assert text.count("<B>") == 10
    assert "commands further away are not drawn" in text
    assert len(re.findall(f'COLOR="{RED}"', text)) == 2


@pytest.mark.parametrize("far", [0, 40])
def test_the_barrier_that_comes_nearest_says_what_it_lacks(far: int, tmp_path: Path) -> None:
    """Also where other commands are closer to both accesses than it is."""
    stream, a, b = two_buffers(256)
    c, d = stream.buffer(256), stream.buffer(256)
    stream.begin()
    stream.fill(a, 7)
    for at in range(far):
        stream.copy(c, d, 1, to=at)
    buffer_barrier(stream, a, 0, 60)
    for at in range(far):
        stream.copy(c, d, 1, to=128 + at)
    stream.copy(a, b, 64)
    stream.end()
    save(tmp_path / "trace.jsonl", stream.blocks)
    for file in ("order.dot", "order.svg"):
        result = CliRunner().invoke(
            graph, [str(tmp_path / "trace.jsonl"), "-o", str(tmp_path / file), "--finding", "1"]
        )
        assert result.exit_code == 0, result.output
        text = (tmp_path / file).read_text()
        assert text.count("comes nearest: it leaves out [60, 64)") == 1
        assert text.count("[60, 64)") == 3, "it stands on the boxes of both accesses, too"
    opinion, (finding,) = judge(stream.blocks), Analysis().follow(stream.blocks).findings
    ours = draw_svg(opinion, opinion.conflicts[0], 9, finding)
    assert "comes nearest: it leaves out [60, 64)" in ours and "comes nearest" not in draw_svg(opinion, None, 99)


def test_of_a_command_with_hundreds_of_parts_some_are_drawn() -> None:
    """Each barrier of this trace has 512 parts."""
    opinion = judge(load(HOSTILE / "stages_of_a_command_by_the_hundred" / "t.jsonl"))
    part = part_of(opinion, None, 24)
    assert max(map(len, part.groups.values())) == MOST_NODES
    assert part.nodes_left_out == len(opinion.order.nodes) - sum(map(len, part.groups.values())) > 0
    text = draw(opinion, None, 24)
    assert f"{part.nodes_left_out} further parts of commands are not drawn" in text


def test_edges_that_others_imply_are_left_out() -> None:
    text = drawn(
        "submit q1\n    CLEAR_TRANSFER_WRITE a\n    barrier ALL_COMMANDS > ALL_COMMANDS\n    COPY_TRANSFER_READ b\n"
    )
    commands = [line for line in text.splitlines() if "->" in line and "invis" not in line]
    assert len(commands) == 3, "submit to fill, fill to barrier, barrier to copy"


def test_files(tmp_path: Path) -> None:
    text = drawn(RACE)
    write_graph(tmp_path / "a.dot", text, not_called)
    assert (tmp_path / "a.dot").read_text() == text
    write_graph(tmp_path / "a.svg", text, not_called)
    svg = (tmp_path / "a.svg").read_text()
    assert "<svg" in svg
    assert "vkCmdCOPY_TRANSFER_READ" in svg
    with pytest.raises(UserError, match=r"\.svg or \.dot"):
        write_graph(tmp_path / "a.png", text, not_called)


def test_without_dot_the_picture_is_drawn_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    opinion = opinion_of(RACE)
    write_graph(tmp_path / "a.svg", drawn(RACE), lambda: standalone(draw_svg(opinion, opinion.conflicts[0], 30)))
    root = ElementTree.fromstring((tmp_path / "a.svg").read_text())
    words = [each.text for each in root.iter(f"{SVG}text")]
    assert {"queue 1001", "queue 1002", "missing: a memory dependency from", "from CLEAR"} <= set(words)
    assert sum((word or "").startswith("vkCmd") for word in words) == 4
    kinds = [each.get("class", "") for each in root.iter()]
    assert sum(kind.endswith(" end") for kind in kinds) == 2, "the cells of the two accesses"
    assert kinds.count("missing") == 1


def boxes(svg: str) -> list[tuple[float, ...]]:
    """(x, y, width, height) of each box of a command."""
    found = [each for each in ElementTree.fromstring(svg).iter(f"{SVG}rect") if each.get("class", "").startswith("box")]
    return [tuple(float(each.get(name, "")) for name in ("x", "y", "width", "height")) for each in found]


def test_no_box_lies_on_another_one() -> None:
    opinion = opinion_of(RACE)
    placed = boxes(draw_svg(opinion, None, 30))
    assert len(placed) >= 4
    for (x, y, width, height), (left, top, wide, high) in combinations(placed, 2):
        assert x + width <= left or left + wide <= x or y + height <= top or top + high <= y


def test_the_command_names_conflicts_and_what_it_drew(tmp_path: Path) -> None:
    trace = tmp_path / "trace.jsonl"
    program = Path(__file__).parents[1] / "programs" / "fill_copy.py"
    arguments = ["-c", "from vkharness.cli import main; main()", "run", "--trace", str(trace), str(program)]
    variables = {**os.environ, **environment(find_driver("lavapipe"))}
    subprocess.run([sys.executable, *arguments], env=variables, check=False, capture_output=True)
    result = CliRunner().invoke(graph, [str(trace), "-o", str(tmp_path / "order.dot")])
    assert result.exit_code == 0, result.output
    assert result.output.splitlines()[0].startswith("1: unordered: vkCmdCopyBuffer")
    assert (tmp_path / "order.dot").read_text().startswith("digraph")


def test_a_hazard_of_a_recording_that_was_never_submitted_is_drawn(tmp_path: Path) -> None:
    """A program that crashes leaves such recordings. Their order is their own."""
    stream, a, b = two_buffers(64)
    stream.begin()
    stream.fill(a, 7)
    stream.copy(a, b, 16)
    save(tmp_path / "trace.jsonl", stream.blocks)
    for drawn_to in ("order.dot", "order.svg"):
        result = CliRunner().invoke(graph, [str(tmp_path / "trace.jsonl"), "-o", str(tmp_path / drawn_to)])
        assert result.exit_code == 0, result.output
        assert "recorded, not submitted" in (tmp_path / drawn_to).read_text()
    opinion = judge(stream.blocks)
    assert "recorded, not submitted" in draw_svg(opinion, opinion.conflicts[0], 9)


def test_findings_are_numbered_as_check_numbers_them(tmp_path: Path) -> None:
    """Two resources of one missing dependency are two conflicts and one finding."""
    stream, a, b = two_buffers(256)
    c = stream.buffer(256)
    stream.begin()
    stream.fill(a, 7)
    stream.fill(b, 7)
    first = stream.copy(a, c, 64)
    second = stream.copy(b, c, 64, to=64)
    overwritten = stream.fill(c, 9)
    stream.submit()
    trace = tmp_path / "trace.jsonl"
    save(trace, stream.blocks)
    analysis = Analysis().follow(stream.blocks)
    groups = groups_of(analysis.findings)
    drawn_at = {}
    for group in groups:
        target = tmp_path / f"{group.number}.dot"
        result = CliRunner().invoke(graph, [str(trace), "--finding", str(group.number), "-o", str(target)])
        assert result.exit_code == 0, result.output
        lines = [line for line in result.output.splitlines() if line.endswith(f", finding {group.number}")]
        assert lines and all(f"(call {group.first.place.call})" in line for line in lines[:1])
        drawn_at[group.number] = re.findall(rf'COLOR="{RED}"', target.read_text())
    assert {group.first.place.call for group in groups} == {first, second, overwritten}
    assert all(len(ends) == 2 for ends in drawn_at.values())
    for options, said in (
        (["--finding", "99"], "has 4 groups of findings"),
        (["--finding", "1", "--conflict", "1"], "choose one"),
    ):
        failed = CliRunner().invoke(graph, [str(trace), *options])
        assert isinstance(failed.exception, UserError) and said in str(failed.exception)


def test_names_labels_and_frames_are_drawn() -> None:
    """A name cannot leave its string, nor a label its cell."""
    stream, a, b = two_buffers(256)
    info = struct("VkSwapchainCreateInfoKHR", imageExtent={"width": 4, "height": 4}, imageArrayLayers=1)
    stream.make("vkCreateSwapchainKHR", "pSwapchain", info)
    name(stream, a, 'particles "\\G"\x1b')
    name(stream, stream.queue, "graphics", 4)
    stream.begin()
    with region(stream, "upload <b>"):
        stream.fill(a, 7)
        stream.copy(a, b, 256)
    stream.submit()
    opinion = judge(stream.blocks)
    text = draw(opinion, opinion.conflicts[0], 24)
    assert f'on {a} \\"particles' in text
    assert f'queue {stream.queue} \\"graphics\\"' in text
    assert text.count("upload &lt;b&gt;, frame 1<") == 2
    assert "\x1b" not in text
    assert "upload &lt;b&gt;, frame 1" in graphviz.Source(text).pipe(format="svg", encoding="utf-8")
