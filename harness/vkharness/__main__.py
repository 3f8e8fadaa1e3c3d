"""`python -m vkharness`: the command, for a debugger or where its script is not on the path."""

from vkharness.cli import main

if __name__ == "__main__":
    main()
