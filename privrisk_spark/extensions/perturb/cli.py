"""The command ``privrisk mask``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from privrisk_spark.cli.options import AcceptUndecided, CommonOptions, DryRun, Explain, StatusFile, Until, take_common
from privrisk_spark.cli.release import release_days

if TYPE_CHECKING:
    from privrisk_spark.policy.policy import Policy


@take_common
def mask(
    common: CommonOptions,
    until: Until = None,
    dry_run: DryRun = False,
    explain: Explain = False,
    accept_undecided: AcceptUndecided = False,
    status_file: StatusFile = None,
) -> None:
    """Mask the columns of a table as its policy says (guarantee.kind: masked), and publish it; no guarantee."""
    release_days(
        common,
        until,
        dry_run=dry_run,
        explain=explain,
        accept_undecided=accept_undecided,
        told=status_file,
        check=_refuse_other_kinds,
    )


def _refuse_other_kinds(policy: Policy) -> None:
    from privrisk_spark.extensions.perturb.rules import refuse_other_kinds

    refuse_other_kinds(policy)
