"""Runs the commands that docs/measurements.md reports, and writes the page from what they print.

    bench/measure [--only NAME]...

Results are kept in docs/measurements.json, so that one measurement can be made anew and the others stay.
"""

from __future__ import annotations

import datetime
import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

import click

ROOT = Path(__file__).resolve().parents[1]
STATE, PAGE = ROOT / "docs" / "measurements.json", ROOT / "docs" / "measurements.md"


class Measurement(NamedTuple):
    """A question, the command that answers it, and a pattern of the printed lines that are its answer."""

    question: str
    command: str
    lines: str = r".*\S.*"


MEASUREMENTS = {
    "suite": Measurement(
        "Do all judges agree on every scenario, and what do the rows and their page cost?",
        "python bench/suite.py --whole",
    ),
    "agreement": Measurement(
        "Do syncval and the model agree on random streams?",
        "vkharness fuzz agreement --count 3300 --seed 2026",
        r".*\bstreams\b.*",
    ),
    "core": Measurement(
        "Do the native core and Python alone say the same of random streams, and of every variant of the scenarios?",
        "python -m hunts core --count 100000 --seed 2026 --scenarios scenarios",
    ),
    "layer": Measurement(
        "Does syncval agree with today's Khronos layer on random streams?",
        "vkharness fuzz layer --first 30000 --count 200",
        r"seeds .*|\d+ streams.*",
    ),
    "layer-families": Measurement(
        "How many hazards of each family of steps are excused by known differences, in streams as they come and in "
        "what is left of them when nothing can need an excuse?",
        "vkharness fuzz layer --family all --first 900000 --count 60",
        r"\d+ streams.*| +family .*| +seed .*",
    ),
    "layer-passes": Measurement(
        "Does syncval agree with today's Khronos layer on random streams with render passes that nobody has seen?",
        "vkharness fuzz layer --first 70000 --count 200 --family rendering --family passes",
        r"seeds .*|\d+ streams.*| +seed .*",
    ),
    "excuses": Measurement(
        "How many mistakes would the known differences from that layer excuse?",
        "python -m hunts excuses --first 71000 --count 20",
        r"\w+, layer .*| +(?:left out|dropped|invented): .*",
    ),
    "old-layer": Measurement(
        "Does syncval agree with the distribution's Khronos layer on random streams?",
        "vkharness fuzz layer --layer old --first 30000 --count 100",
        r"seeds .*|\d+ streams.*",
    ),
    "observe": Measurement(
        "Do commands on lavapipe touch only what is declared for them, and how much of that do they touch?",
        "vkharness observe --scenarios scenarios --runs 8",
        r"command +runs.*|vk\w+ +\d+ .*|\d+ of \d+ streams observed.*|\S+/\S+: .*",
    ),
    "observe-swiftshader": Measurement(
        "The same on SwiftShader.",
        "vkharness observe --scenarios scenarios --runs 8 --device swiftshader",
        r"command +runs.*|vk\w+ +\d+ .*|\d+ of \d+ streams observed.*|\S+/\S+: .*",
    ),
    "observe-random": Measurement(
        "Do the commands of random streams on lavapipe touch only what is declared for them?",
        "vkharness observe --random 150 --seed 7000 --runs 4",
        r"\d+ of \d+ streams observed.*|seed.*",
    ),
    "check": Measurement(
        "What does `vkharness check` of a million commands cost, by part?", "python bench/check_cost.py"
    ),
    "packed": Measurement(
        "How large is a trace as lines and in one file, what does reading cost, and does memory grow with its length?",
        "python bench/packed_traces.py --commands 10000 --commands 100000 --commands 1000000",
    ),
    "kills": Measurement(
        "Does every command that writes files leave them whole where it is killed, and does the next run go on?",
        "python -m hunts kills examples/two_submits.py --count 16 --seed 2026",
        r"seed .*|\d+ kills.*|before: .*|struck: .*|\d+ faults.*| +\d+ .*",
    ),
    "orders": Measurement(
        "Do clean random streams leave the same bytes in every legal order?", "vkharness fuzz orders --count 100"
    ),
    "mends": Measurement(
        "Is every hazard of random streams mended, is each bit of each mend needed, and do legal orders hold then?",
        "vkharness fuzz mends --count 100",
    ),
    "mended-twins": Measurement(
        "Is every scenario mended without each of its dependencies, with no more than the dependency that it names?",
        "python -m bench.mend_scenarios",
        r"\d+ mended.*|\d+ by .*|\S+/\S+ without .*",
    ),
    "hostile": Measurement(
        "What came of all hunts with hostile files together? Faults are mended; tests/data/hostile has their inputs.",
        "vkharness fuzz hostile --count 0 --total bench/hostile_hunts.jsonl",
        r"\d+ hunts.*|\d+ inputs.*|asked: .*|at most .*|seed .*| +\d+ .*",
    ),
    "extension": Measurement(
        "What came of all hunts with hostile calls of the native core together?",
        "python -m hunts extension --count 0 --total bench/extension_hunts.jsonl",
        r"\d+ hunts.*|with.*|from seed .*",
    ),
    "threads": Measurement(
        "Do 16 threads that record, submit and destroy at once get the verdict of the same work in one thread?",
        "PYTHONDEVMODE=1 python -m hunts threads --minutes 10 --seed 2026",
        r".*\bthreads\b.*|\d+ rounds.*|memory.*| +seed .*",
    ),
    "threads-free": Measurement(
        "The same where threads run Python at once. The interpreter and the packages are not those of the environment.",
        "PYTHONPATH=harness PYTHON_GIL=0 PYTHONDEVMODE=1 python3.14t -m hunts threads --minutes 10 --seed 4026",
        r".*\bthreads\b.*|\d+ rounds.*|memory.*| +seed .*",
    ),
    "matrix": Measurement(
        "Do all judges agree on pairs of operations, for each defect of the primitive between them?",
        "vkharness matrix --sample 300 --seed 21",
        r"\d+ of \d+ cells.*|(?:defect|primitive|resource) +cells.*|[a-z].* +\d+ +\d+ +\d+ +\d+",
    ),
    "matrix-campaign": Measurement(
        "Do expectation, syncval and the model agree on every cell of the matrix, and bytes on one cell in 20?",
        "vkharness campaign matrix --every 20 --layer off --chunk 1000 -o matrix.jsonl > log; "
        "python -m bench.matrix_campaign matrix.jsonl",
    ),
    "rules": Measurement(
        "Who notices when one judge has a rule no more? (Of each function that cites the rule, the first change that "
        "anybody notices counts. A change that only raises an exception does not. Observing asks no judge.)",
        "vkharness mutate --rules --seed 3",
        r"\d+ rules of a judge.*|rules noticed|rule +judge.*|\S+ +(?:syncval|model) .*|all \d+ rules.*",
    ),
    "mutate": Measurement(
        "Who notices when one piece of a dependency is dropped?", "vkharness mutate --sample 60 --seed 1"
    ),
    "drivers": Measurement(
        "Which rows of the suite notice a driver that breaks a promise?", "vkharness mutate --drivers"
    ),
    "faults": Measurement(
        "What becomes of a run whose driver fails, hangs, crashes or loses the device?",
        "vkharness fuzz faults --count 1000 --seed 1",
    ),
    "reproduced": Measurement(
        "Does the hazard of a program become a scenario that passes? (The programs are twins of scenarios without a "
        "dependency.)",
        "python -m bench.reproduce_scenarios --every 12",
    ),
    "printed": Measurement(
        "Is the verdict of what api_dump printed that of the trace?", "python -m bench.printed_scenarios --every 12"
    ),
    "gate": Measurement(
        "Does a command that comes with another number each time cost about as much as one that comes again? (Every "
        "common command of the registry, each parameter in turn. A line has the worst parameter; the ratio is that of "
        "fresh to alike; the goal is in `bench/gate.py`.)",
        "python -m bench.gate --state .venv/gate.jsonl && rm .venv/gate.jsonl",
    ),
    "cliffs": Measurement(
        "With which exponent does the cost grow with what a program has more of? (1 is in proportion.)",
        "python bench/cliffs.py",
    ),
    "frame": Measurement(
        "What do the mirror and each Khronos layer add to frames that were written by hand? (Other frames cost what "
        "the gate says.)",
        "python bench/frame.py",
    ),
    "frame-parts": Measurement("Which part of the mirror adds that?", "python bench/frame_parts.py"),
    "command-memory": Measurement(
        "How much memory does a recorded command take, and for what?",
        "python bench/command_memory.py --commands 200000",
    ),
    "barriers": Measurement(
        "Does a barrier cost the same with 100 tracked ranges and with a million, and what does a range take?",
        "python bench/barriers.py",
    ),
    "calls": Measurement("What does recording add to one call?", "python bench/mirror_cost.py"),
    "model": Measurement("What does asking the model cost beside a check?", "python bench/model_cost.py"),
    "amplification": Measurement(
        "How does the work grow that small traces ask for?", "python bench/amplification.py --counted"
    ),
    "growth": Measurement(
        "Does a round of 40 commands cost the same late as early, where nothing is ever destroyed?",
        "python bench/growth.py",
    ),
    "reports": Measurement(
        "Is the verdict right on programs that were rebuilt from public reports, as reported and as mended, and what "
        "does today's layer say of them?",
        "python -m bench.reports --jobs 4",
    ),
    "distributions": Measurement(
        "What comes of the tests on bare distributions? ci/distributions runs them; this is what it noted.",
        "python -m bench.distributions",
    ),
    "session": Measurement(
        "Does a live session keep its size while a program draws frame after frame?", "python bench/growth.py --session"
    ),
    "start": Measurement("What does it cost to start?", "python bench/start.py"),
    "playground": Measurement(
        "What does the playground take before its first answer, and for a later one?", "python -m bench.playground"
    ),
    "spans": Measurement(
        "How fast is the map over ranges in a plain list, in a sorted list and in the native core?",
        "python bench/spans.py",
    ),
}


def measure(name: str) -> dict[str, Any]:
    """Runs the command. Returns its output, and when, where and with what it ran. Its progress goes to stderr."""
    wanted = MEASUREMENTS[name]
    load, start = os.getloadavg()[0], time.monotonic()
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "COLUMNS": "120"}
    command = ["bash", "-c", wanted.command]
    ran = subprocess.run(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True, check=False)
    found = [line.rstrip() for line in ran.stdout.splitlines() if re.fullmatch(wanted.lines, line.rstrip())]
    if not found:
        raise click.ClickException(f"{name}: {wanted.command} printed no line like {wanted.lines!r}:\n{ran.stdout}")
    return {
        "command": wanted.command,
        "status": ran.returncode,
        "lines": found,
        "seconds": round(time.monotonic() - start),
        "load": round(load, 1),
        "date": datetime.date.today().isoformat(),
        "machine": f"{os.cpu_count()} cores, {_processor()}",
        "versions": _versions(),
    }


def _processor() -> str:
    """The model of the processor, without the name of the machine."""
    found = re.search(r"^model name\s*: (.*)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    return found[1] if found else "unknown processor"


def _versions() -> str:
    """Python, the driver and the Khronos layers."""
    drivers = _printed(str(Path(sys.executable).with_name("vkharness")), "drivers")
    mesa = re.search(r"Mesa [\d.]+", drivers)
    layers = re.findall(r"VK_LAYER_KHRONOS_validation +([\d.]+)", drivers)
    python = ".".join(map(str, sys.version_info[:3]))
    return f"Python {python}, {mesa[0] if mesa else 'no Mesa'}, layers {', '.join(layers)}"


def _printed(*command: str) -> str:
    environment = {**os.environ, "COLUMNS": "300"}
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True).stdout


def page(state: dict[str, dict[str, Any]]) -> str:
    """The page, from the state of all measurements that were made."""
    text = """# Measurements

`bench/measure` writes this page from what the commands print; nobody edits it. `bench/measure --only NAME` makes one
measurement anew. The load is that of the machine when a command started: when other work ran beside it, times are too
long.

| measurement | of | what it asks |
|---|---|---|
"""
    made_of = {name: wanted for name, wanted in MEASUREMENTS.items() if name in state}
    text += "".join(
        f"| [{name}](#{name}) | {state[name]['date']} | {each.question} |\n" for name, each in made_of.items()
    )
    for name, wanted in made_of.items():
        made = state[name]
        status = f" It exited with {made['status']}." if made["status"] else ""
        text += (
            f"\n## {name}\n\n{wanted.question}\n\n"
            f"`{made['command']}`, {made['date']}, {made['seconds']} s, load {made['load']}.{status}\n"
            f"{made['machine']}; {made['versions']}.\n\n```text\n" + "\n".join(made["lines"]) + "\n```\n"
        )
    return text


@click.command()
@click.option("--only", "names", multiple=True, type=click.Choice(list(MEASUREMENTS)), help="Make only this one.")
def main(names: tuple[str, ...]) -> None:
    """Make measurements, and write the page after each."""
    for name in names or MEASUREMENTS:
        click.echo(f"{name}: {MEASUREMENTS[name].command}", err=True)
        made = measure(name)
        state = json.loads(STATE.read_text(encoding="utf-8")) if STATE.exists() else {}
        STATE.write_text(json.dumps({**state, name: made}, indent=1) + "\n", encoding="utf-8")
        PAGE.write_text(page({**state, name: made}), encoding="utf-8")


if __name__ == "__main__":
    main()
