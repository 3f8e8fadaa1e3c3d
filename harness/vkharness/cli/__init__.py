"""The `vkharness` command: one subcommand a module, loaded when it is called, so that starting costs little.

Exit codes: 0 clean, 1 hazards, 2 usage or bad input, 3 unmodelled commands and no hazard, 70 an error of vkharness
itself; `run` passes on the program's own failure.
"""

from __future__ import annotations

import importlib
import os
import signal
import sys
from typing import Any

import click
from click.shell_completion import shell_complete

import vkharness
from vkharness.cli.last_resort import echo, give_up_stdout, output_trouble, stdout_trouble, tell_of_internal_error
from vkharness.cli.near import did_you_mean
from vkharness.findings import UserError

COMMANDS = {
    "run": "Run an unmodified program and judge its Vulkan calls.",
    "check": "Judge a trace or a capture, with no driver installed.",
    "races": "Find races between the invocations of each dispatch of a trace.",
    "replay": "Run a trace on a device.",
    "reproduce": "Make a folder about each hazard that a maintainer can be sent.",
    "convert": "Write a trace in the other form, or as a trace what another tool recorded.",
    "join": "Make one trace of those of two processes that share images, buffers or semaphores.",
    "mend": "Find the smallest dependency that orders what each finding is about, and prove it.",
    "advise": "Say which dependencies are more than any access needs, and what they serialize.",
    "reduce": "Make a trace as small as it can be with one finding in it.",
    "observe": "Find out what each command of a trace really reads and writes on a driver.",
    "fmt": "Print a stream text in its canonical form, or a trace as stream text.",
    "mutate": "Drop each piece of each dependency of the scenarios, and score who notices.",
    "init": "Make a project with one scenario, a shader and files for continuous integration.",
    "suite": "Run every scenario that comes with the harness, under pytest.",
    "report": "Make a page of a run of the suite that a browser opens from the disk.",
    "graph": "Draw what must be complete before what in a trace, and what is missing.",
    "explain": "Say why each pair of accesses in a trace is in order, or what is missing.",
    "explain-rule": "Print the rule or the hazard that a finding names, with no network.",
    "matrix": "Order pairs of operations in every way, right and wrong, and ask every judge.",
    "fuzz": "Hunt for disagreements on random streams: with the model, with the Khronos layer, on legal orders.",
    "campaign": "Hunt over many seeds, on every core or on many machines.",
    "compare": "Say what changed from one run of the suite to another.",
    "shown": "Count the rows of a run that runs as recorded showed, by strategy.",
    "computed": "List the rows of a run by why bytes were not computed without the driver.",
    "completion": "Print what makes a shell complete commands, options and files.",
    "man": "Print the manual page.",
    "setup": "Install software drivers, layers and the capture tools.",
    "drivers": "List the drivers and layers of this machine and what each can do.",
}
"""Subcommand, which is also its module here and the function in it (with `_` for `-`), to its line of help."""

NAME = "vkharness"
COMPLETE = "_VKHARNESS_COMPLETE"
"""What a shell sets when it asks what may come next (`vkharness completion`)."""
CLEAN, HAZARDS, BAD_INPUT, UNMODELLED, INTERNAL, INTERRUPTED = 0, 1, 2, 3, 70, 130
"""Exit codes; the last one after Ctrl-C."""


class LazyGroup(click.Group):
    """Imports a subcommand's module only when that subcommand is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names in the order of `COMMANDS`."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The subcommand of that name."""
        if cmd_name not in COMMANDS:
            return None
        module = cmd_name.replace("-", "_")
        command = getattr(importlib.import_module(f"vkharness.cli.{module}"), module)
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The subcommand that is asked for; of one that is not known, the names that are near."""
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            ctx.fail(f"No such command {args[0]!r}{did_you_mean(args[0], COMMANDS)}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Lists the subcommands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(vkharness.__version__, message="%(prog)s %(version)s", help="Show the version.")
def cli() -> None:
    """Find synchronization hazards in Vulkan programs, and show them.

    Exit codes: 0 clean, 1 hazards, 2 usage or bad input, 3 unmodelled commands and no hazard, 70 an error of vkharness
    itself.
    """


def exit_code(verdict: str) -> int:
    """The exit code for `clean`, `hazards` or `unknown`."""
    return {"clean": CLEAN, "hazards": HAZARDS, "unknown": UNMODELLED}[verdict]


def main(arguments: list[str] | None = None, group: click.Command = cli, interrupted: Any = None) -> None:
    """The command, or another group of commands. Bad input is one line on stderr and exit 2, an error of our own one
    line and exit 70; never a traceback. `interrupted` is what handles SIGINT from here on, if not what does already."""
    given = sys.argv[1:] if arguments is None else arguments
    if group is cli and COMPLETE in os.environ:
        sys.exit(shell_complete(cli, {}, NAME, COMPLETE, os.environ[COMPLETE]))
    try:
        if interrupted is not None:
            signal.signal(signal.SIGINT, interrupted)
        code = _invoke(given, group)
        trouble = stdout_trouble()
    except (click.Abort, KeyboardInterrupt):
        die_of(signal.SIGINT)
    except Exception as error:
        trouble = output_trouble(error)
        if trouble is None:
            tell_of_internal_error(error, given)
            sys.exit(INTERNAL)
    if trouble is not None:
        give_up_stdout()
        if isinstance(trouble, BrokenPipeError):
            die_of(signal.SIGPIPE)
        echo(f"vkharness: the output cannot be written: {trouble.strerror or trouble}", err=True)
        code = BAD_INPUT
    sys.exit(code)


def _invoke(arguments: list[str], group: click.Command) -> int:
    """Runs a subcommand; the exit code."""
    name = NAME if group is cli else f"python -m {group.name}"
    try:
        with group.make_context(name, list(arguments)) as ctx:
            group.invoke(ctx)
    except click.exceptions.Exit as leaving:
        return leaving.exit_code
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        return BAD_INPUT
    except click.UsageError as error:
        path = error.ctx.command_path if error.ctx else name
        echo(f"vkharness: {error.format_message().rstrip('.')}; see '{path} --help'", err=True)
        return BAD_INPUT
    except click.ClickException as error:
        echo(f"vkharness: {error.format_message()}", err=True)
        return BAD_INPUT
    except UserError as error:
        echo(f"vkharness: {error}", err=True)
        return BAD_INPUT
    return CLEAN


def die_of(number: signal.Signals) -> None:
    """Ends this process as that signal would have, so that a shell sees why."""
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
