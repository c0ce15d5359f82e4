"""`python -m confide` is the command `confide`."""

from __future__ import annotations

from confide.cli import main

if __name__ == "__main__":
    main()
