"""Build the site of these documents: ``python docs/site.py DIR [--notebook EXECUTED.ipynb]`` (``make site``).

``DIR/pages`` gets the pages: those of this directory, the README and other documents of the project, and the notebook,
with links that fit; files of the project that a page links to lie beside it. ``DIR/site`` gets the site, by Zensical.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

DOCS = Path(__file__).resolve().parent
ROOT = DOCS.parent

OF_THE_PROJECT = {
    "README.md": "readme.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
}
"""Documents at the top of the project, and their pages."""

NOTEBOOK = "quickstart.ipynb"

_LINK = re.compile(r"(?P<mark>!?)\[(?P<text>[^\]]*)\]\((?P<to>[^)\s#]+)(?P<part>#[^)\s]*)?\)")


def notebook(cells: list[dict[str, Any]]) -> Iterator[str]:
    """Paragraphs of a notebook's page: its texts, its code, and what the code showed if it was run."""
    for cell in cells:
        text = "".join(cell["source"])
        yield text if cell["cell_type"] == "markdown" else f"```python\n{text}\n```"
        for shown in cell.get("outputs", ()):
            if shown.get("name") == "stderr":  # what Spark says as it starts
                continue
            data = shown.get("data", {})
            if "text/html" in data:
                # pandas heads its index by an empty cell, which is read out as a heading.
                shown_here = "".join(data["text/html"]).replace("<th></th>", "<td></td>")
                yield f'<div class="shown">\n{shown_here}\n</div>'
            elif found := "".join(data.get("text/plain", shown.get("text", ""))).rstrip():
                yield f"```text\n{found}\n```"


def title(file: Path) -> str:
    """Return the first heading of a page or notebook."""
    text = file.read_text(encoding="utf-8")
    if file.suffix == ".ipynb":
        text = "".join(json.loads(text)["cells"][0]["source"])
    return next(line for line in text.splitlines() if line.startswith("# "))[2:]


def linked(text: str, source: Path, pages: Path) -> str:
    """Return a page with links that fit the site; what they lead to outside the pages is put beside these."""

    def fit(match: re.Match[str]) -> str:
        to, part, text = match["to"], match["part"] or "", match["text"]
        if "://" in to or to.startswith("mailto:"):
            return match[0]
        file = (source.parent / to).resolve()
        inside = str(file.relative_to(ROOT))
        if inside in OF_THE_PROJECT:
            to = OF_THE_PROJECT[inside]
        elif file.parent == DOCS and file.suffix in (".md", ".ipynb"):
            to = file.with_suffix(".md").name
            # A page is called by its title, not by its file.
            text = title(file) if text == file.name else text
        else:
            copy = pages / "files" / inside
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, copy)
            to = f"files/{inside}"
        return f"{match['mark']}[{text}]({to}{part})"

    # Not within code.
    parts = re.split(r"(```.*?```|`[^`\n]+`)", text, flags=re.DOTALL)
    return "".join(part if at % 2 else _LINK.sub(fit, part) for at, part in enumerate(parts))


def assemble(into: Path, executed: Path | None) -> None:
    """Write the pages and the site's configuration."""
    pages = into / "pages"
    shutil.rmtree(into, ignore_errors=True)
    pages.mkdir(parents=True)
    sources = {path: path.name for path in sorted(DOCS.glob("*.md"))}
    sources |= {ROOT / name: page for name, page in OF_THE_PROJECT.items()}
    for path, page in sources.items():
        (pages / page).write_text(linked(path.read_text(encoding="utf-8"), path, pages), encoding="utf-8")
    cells = json.loads((executed or DOCS / NOTEBOOK).read_text(encoding="utf-8"))["cells"]
    text = linked("\n\n".join(notebook(cells)), DOCS / NOTEBOOK, pages)
    (pages / "quickstart.md").write_text(text + "\n", encoding="utf-8")
    for name in ("site.css", "site.js"):
        shutil.copyfile(DOCS / name, pages / name)
    shutil.copyfile(DOCS / "zensical.toml", into / "zensical.toml")


def main() -> int:
    """Build the site; the exit code is Zensical's, which takes a warning for an error."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dir", type=Path, help="replaced if it is there")
    parser.add_argument("--notebook", type=Path, help="the notebook with what its cells showed; without it, code alone")
    asked = parser.parse_args()
    assemble(asked.dir, asked.notebook)
    zensical = Path(sys.executable).with_name("zensical")
    return subprocess.run([zensical, "build", "--strict", "--clean"], cwd=asked.dir, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
