"""Entry point for spark-submit: ``spark-submit jobs/share.py --config conf/sharing-demo.yaml --output vault/sharing``.

Takes the same options as ``privrisk share``; exit codes 0 done, 1 refused, 2 policy or input error, 3 engine failure.
"""

from __future__ import annotations

import sys

from privrisk_spark.cli.app import app

if __name__ == "__main__":
    app(args=["share", *sys.argv[1:]], prog_name="share.py")
