"""Entry point for spark-submit: ``spark-submit jobs/experiments.py deciding --output DIR``.

Takes the same options as ``privrisk experiments``; exit codes 0 done, 2 policy or input error, 3 engine failure.
"""

from __future__ import annotations

import sys

from privrisk_spark.cli.app import app

if __name__ == "__main__":
    app(args=["experiments", *sys.argv[1:]], prog_name="experiments.py")
