"""Entry point for spark-submit: ``spark-submit jobs/audit.py --config conf/adult-dp.yaml --output DIR``.

Takes the same options as ``privrisk audit``; exit codes 0 passed, 1 flagged, 2 policy or input error, 3 engine failure.
"""

from __future__ import annotations

import sys

from privrisk_spark.cli.app import app

if __name__ == "__main__":
    app(args=["audit", *sys.argv[1:]], prog_name="audit.py")
