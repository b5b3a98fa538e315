"""Where the program `exhume` begins, and `python -m exhume`."""

import sys


def main() -> None:
    """Run the command line. Its parts take a moment to be imported: an interrupt that comes meanwhile ends it as later ones do."""
    try:
        from exhume.cli.app import main as run_command_line
    except KeyboardInterrupt:
        sys.stderr.write("interrupted\n")
        sys.exit(130)
    run_command_line()


if __name__ == "__main__":
    main()
