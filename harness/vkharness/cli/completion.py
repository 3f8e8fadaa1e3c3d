"""`vkharness completion SHELL`: the script that makes a shell complete commands, options and files."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from vkharness.cli import COMPLETE, NAME, cli
from vkharness.cli.last_resort import echo

SHELLS = ("bash", "zsh", "fish")


@click.command()
@click.argument("shell", type=click.Choice(SHELLS))
def completion(shell: str) -> None:
    """Print what makes a shell complete commands, options and files.

    \b
    bash: eval "$(vkharness completion bash)" in ~/.bashrc
    zsh:  eval "$(vkharness completion zsh)" in ~/.zshrc
    fish: vkharness completion fish > ~/.config/fish/completions/vkharness.fish
    """
    kind = get_completion_class(shell)
    assert kind is not None
    made = kind(cli, {}, NAME, COMPLETE)
    echo(made.source_template % made.source_vars())
