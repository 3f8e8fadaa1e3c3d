"""The `vkharness` command: the console script, and `python -m vkharness` where the script is not on the path.

Ctrl-C while the command is loaded ends the process as the signal does by itself. An exception there is a traceback of
imports.
"""

import signal


def main() -> None:
    """Loads the command and runs it."""
    handler = signal.getsignal(signal.SIGINT)
    if handler is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from vkharness.cli import main as command

    command(interrupted=handler)


if __name__ == "__main__":
    main()
