"""The start of the program `exhume`, and of `python -m exhume`."""

import sys


def main() -> None:
    """Run the command line. An interrupt during the imports ends it as a later one does."""
    try:
        from exhume.cli.app import main as run_command_line
    except KeyboardInterrupt:
        sys.stderr.write("interrupted\n")
        sys.exit(130)
    run_command_line()


if __name__ == "__main__":
    main()
