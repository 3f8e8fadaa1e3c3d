"""What asking the model costs beside reading and judging a trace: `python bench/model_cost.py`.

Streams of copies and barriers of growing length. The last column says how the model's time compares with a whole
`vkharness check` that asks only syncval, start of the process included.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from harness.check import Analysis
from harness.model import judge_stream_events
from harness.trace.codec import load, save
from tests.support.streams import Stream

LENGTHS = (100, 300, 1_000, 3_000)


def stream_of(commands: int) -> Stream:
    """Copies between buffers, each with a barrier behind it, in five submits."""
    stream = Stream()
    buffers = [stream.buffer(256) for _ in range(20)]
    for _ in range(5):
        made = stream.begin()
        for at in range(commands // 10):
            stream.copy(buffers[at % 20], buffers[(at + 7) % 20], 256)
            stream.barrier()
        stream.end()
        stream.submit(made)
    return stream


def main() -> None:
    """Prints the table."""
    print("commands  nodes  read + syncval ms  model ms  model / whole check")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.jsonl"
        for commands in LENGTHS:
            save(path, stream_of(commands).blocks)
            start = time.perf_counter()
            analysis = Analysis(keep_events=True).follow(load(path))
            judged = time.perf_counter()
            opinion = judge_stream_events(analysis.events)
            asked = time.perf_counter()
            command = [
                sys.executable,
                "-c",
                "from harness.cli import main; main()",
                "check",
                "--model",
                "never",
                str(path),
            ]
            subprocess.run(command, check=False, stdout=subprocess.DEVNULL)
            whole = time.perf_counter() - asked
            columns = f"{1e3 * (judged - start):17.0f} {1e3 * (asked - judged):9.0f} {(asked - judged) / whole:20.2f}"
            print(f"{commands:8,} {len(opinion.order.nodes):6,} {columns}")


if __name__ == "__main__":
    main()
