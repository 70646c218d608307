"""Run ``quickstart.ipynb``: ``python docs/notebook.py OUT.ipynb`` writes it with what its cells showed."""

from __future__ import annotations

import sys
from pathlib import Path

import nbformat
from nbclient import NotebookClient

NOTEBOOK = Path(__file__).with_name("quickstart.ipynb")


def main() -> int:
    """Run the cells in order; an error of one ends the program."""
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    NotebookClient(notebook, timeout=1200, kernel_name="python3").execute()
    nbformat.write(notebook, sys.argv[1])
    return 0


if __name__ == "__main__":
    sys.exit(main())
