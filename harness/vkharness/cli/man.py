"""`vkharness man`: the manual page, from what `--help` says of each command."""

from __future__ import annotations

import re
from collections.abc import Iterator

import click

import vkharness
from vkharness.cli import NAME, cli
from vkharness.cli.last_resort import echo


@click.command()
def man() -> None:
    """Print the manual page: `vkharness man > vkharness.1`, `man ./vkharness.1`."""
    echo("\n".join(_page()))


def _page() -> Iterator[str]:
    yield f'.TH VKHARNESS 1 "" "{NAME} {vkharness.__version__}"'
    yield ".SH NAME\nvkharness \\- find synchronization hazards in Vulkan programs, and show them"
    yield ".SH SYNOPSIS\n.B vkharness\n.I COMMAND\n[OPTIONS] [ARGUMENTS]"
    yield f".SH DESCRIPTION\n{_text(cli.help)}"
    yield ".SH COMMANDS"
    context = click.Context(cli, info_name=NAME)
    for name in cli.list_commands(context):
        command = cli.get_command(context, name)
        assert command is not None
        yield from _of_command(command, click.Context(command, parent=context, info_name=name))


def _of_command(command: click.Command, context: click.Context) -> Iterator[str]:
    usage = _text(command.get_usage(context).removeprefix("Usage: ").replace("\n", " "))
    yield f'.SS "{context.command_path}"\n.B {usage}\n.PP\n{_text(command.help)}'
    for parameter in command.get_params(context):
        record = parameter.get_help_record(context)
        if record is not None:
            yield f".TP\n.B {_text(record[0])}\n{_text(record[1])}"
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            if inner is not None:
                yield from _of_command(inner, click.Context(inner, parent=context, info_name=name))


def _text(text: str | None) -> str:
    """Text of roff: paragraphs, with nothing that is a request."""
    said = (text or "").replace("\b\n", "").replace("\\", "\\e").replace("-", "\\-")
    paragraphs = (re.sub(r"\s+", " ", each).strip() for each in said.split("\n\n"))
    return "\n.PP\n".join(f"\\&{each}" if each[:1] in (".", "'") else each for each in paragraphs)
