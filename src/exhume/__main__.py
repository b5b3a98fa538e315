"""`python -m exhume`."""

from exhume.cli.app import main

main()
