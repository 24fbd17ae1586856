"""`python -m clickmix`: the command, if it is not on the path."""

from __future__ import annotations

from clickmix.cli import main

if __name__ == "__main__":
    main()
