"""Entry point for spark-submit: ``spark-submit jobs/assess.py --config conf/adult.yaml --output DIR``.

Takes the same options as ``privrisk assess``; exit codes 0 done, 1 a threshold is missed, 2 policy or input error, 3
engine failure.
"""

from __future__ import annotations

import sys

from privrisk_spark.cli.app import app

if __name__ == "__main__":
    app(args=["assess", *sys.argv[1:]], prog_name="assess.py")
