"""Entry point for spark-submit: ``spark-submit jobs/curves.py --config conf/adult.yaml --output vault/curves``.

Takes the same options as ``privrisk curves``; exit codes 0 done, 2 policy or input error, 3 engine failure.
"""

from __future__ import annotations

import sys

from privrisk_spark.cli.app import app

if __name__ == "__main__":
    app(args=["curves", *sys.argv[1:]], prog_name="curves.py")
