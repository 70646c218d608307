"""What tests/jobs/test_cluster.py submits: commands one after the other, in one session, as they would be alone.

The first argument is a JSON file with the words of each; how each ended and what it said is written beside it.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from typer.testing import CliRunner

from privrisk_spark.cli.app import app
from privrisk_spark.engine.session import build


def main(asked: Path) -> None:
    spark = build("commands")
    ended = []
    for words in json.loads(asked.read_text()):
        ran = CliRunner().invoke(app, words)
        ended.append({"code": ran.exit_code, "said": ran.output})
        asked.with_suffix(".ended").write_text(json.dumps(ended))
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
