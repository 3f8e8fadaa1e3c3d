"""`vkharness join FIRST SECOND -o FILE`: the traces of two processes that share payloads, as one trace."""

from __future__ import annotations

from pathlib import Path

import click

from vkharness.cli.last_resort import echo
from vkharness.cli.trace_argument import TracePath
from vkharness.cli.verdict import WORK_OPTION
from vkharness.findings import UserError


@click.command()
@WORK_OPTION
@click.argument("first", type=TracePath())
@click.argument("second", type=TracePath())
@click.option("-o", "--output", type=click.Path(path_type=Path), required=True, help="Write the joined trace here.")
@click.option(
    "--pair",
    "said",
    metavar="N=M",
    multiple=True,
    help="Block N of FIRST and block M of SECOND are an export and the import of it. May be given several times.",
)
def join(first: Path, second: Path, output: Path, said: tuple[str, ...]) -> None:
    """Join the traces of two processes that share images, buffers, semaphores or fences.

    What one process exports and the other one imports becomes one object. It is known by the file behind the descriptor
    that went from one to the other. Where a trace does not know the file, exports and imports of one kind belong
    together in their order, or as --pair says.

    The calls of each process stay in order. Between the two, a wait comes after the signal that it meets. The joined
    trace is judged as one, with both processes' queues, by every command that takes a trace. No Vulkan loader or driver
    is needed.
    """
    from vkharness.joining.join import join as joined
    from vkharness.trace.codec import load, save

    notes: list[str] = []
    traces = [load(each, notes) for each in (first, second)]
    for note in notes:
        echo(f"vkharness: note: {note}", err=True)
    pairs = dict(map(_pair, said))
    try:
        made = joined(traces[0], traces[1], pairs)
    except UserError as error:
        raise UserError(f"{first}, {second}: {error}") from None
    save(output, made.blocks, {"joined": {"from": [first.name, second.name]}})
    echo(f"{output}: {len(made.blocks)} blocks of {first} and {second}, which share {made.shared}")


def _pair(text: str) -> tuple[int, int]:
    one, _, other = text.partition("=")
    if not (one.isascii() and one.isdigit() and other.isascii() and other.isdigit()):
        raise UserError(f"--pair {text}: write the numbers of two blocks, as 12=34")
    return int(one), int(other)
