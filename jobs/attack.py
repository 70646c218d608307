"""Entry point for spark-submit: ``spark-submit jobs/attack.py --config conf/adult.yaml --output vault/attack``.

Takes the same options as ``privrisk attack``; exit codes 0 done, 1 more may be found than asked for, 2 policy or input
error, 3 engine failure.
"""

from __future__ import annotations

import sys

from privrisk_spark.cli.app import app

if __name__ == "__main__":
    app(args=["attack", *sys.argv[1:]], prog_name="attack.py")
