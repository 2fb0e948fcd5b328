"""``python -m hunch`` is the ``hunch`` command."""

from hunch.cli.main import main

if __name__ == "__main__":
    main()
