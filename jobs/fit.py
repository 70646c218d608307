"""Entry point for spark-submit: ``spark-submit jobs/fit.py --config conf/adult-k-anonymity.yaml --output vault/fit``.

Takes the same options as ``privrisk fit``; exit codes 0 done, 1 no scheme meets the guarantee, 2 policy or input error,
3 engine failure.
"""

from __future__ import annotations

import sys

from privrisk_spark.cli.app import app

if __name__ == "__main__":
    app(args=["fit", *sys.argv[1:]], prog_name="fit.py")
