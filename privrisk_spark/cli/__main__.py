"""``python -m privrisk_spark.cli``: the same as ``privrisk``."""

from __future__ import annotations

from privrisk_spark.cli.app import main

if __name__ == "__main__":
    main()
