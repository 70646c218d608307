"""Admitted cells that an earlier release published, taken again.

They are an output that was paid for, so a release that uses them pays for sampling and threshold alone. That holds for
the very set that was released, for the same people and the same protected unit, and only if the earlier release was
charged to the lineage; a set in another numbering of nodes would mean other cells. So whatever differs is refused.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from privrisk_spark.errors import BudgetError, ConfigError, Fault, InputError
from privrisk_spark.hierarchies.hierarchy import Hierarchy
from privrisk_spark.ledger.calibrated import Calibrated, ReusedSet, calibrated, calibrated_of
from privrisk_spark.ledger.request import lineage_name
from privrisk_spark.policy.policy import Policy
from privrisk_spark.policy.private import ReusingDp
from privrisk_spark.runs.sealing import release_digest
from privrisk_spark.storage.documents import read_text, size_and_digest

if TYPE_CHECKING:
    from privrisk_spark.ledger.ledger import Ledger

CELLS = "admitted.parquet"
"""Name of the file of admitted cells in a release: ``scheme``, ``n<i>`` (node of quasi-identifier i), ``noisy``."""

_KEY = "guarantee.reuse"


@dataclass(frozen=True)
class Reused:
    """Admitted cells of an earlier release, as its manifest describes them.

    Attributes
    ----------
    run_id, lineage : str
        Of the earlier release.
    path : Path
        File of the cells.
    sha256 : str
        Of the file, hex; it was checked.
    schemes : tuple of tuple of int
        Level vectors by the number of the scheme.
    columns : tuple of (str, str)
        Quasi-identifiers in order, with the fingerprint of their hierarchies.
    published : Calibrated
        Of the earlier release.
    release : str
        Digest of the earlier release, by its manifest.
    """

    run_id: str
    lineage: str
    path: Path
    sha256: str
    schemes: tuple[tuple[int, ...], ...]
    columns: tuple[tuple[str, str], ...]
    published: Calibrated
    release: str

    @property
    def cells(self) -> ReusedSet:
        """What a mechanism that takes the cells says of them."""
        return ReusedSet(run_id=self.run_id, sha256=self.sha256)

    @property
    def frequent(self) -> int:
        """``t`` of the earlier release."""
        return self.published.frequent

    @classmethod
    def read(cls, manifest: str, *, planned: ReusedSet | None = None) -> Reused:
        """Read what a manifest says of its admitted cells, and hold the file against it.

        Parameters
        ----------
        manifest : str
            Its path.
        planned : ReusedSet, optional
            The cells that a mechanism was calibrated for.

        Raises
        ------
        ConfigError
            If there is no such manifest, it has no admitted cells of its own, the file is not the one it names, or it
            is another than was planned with.
        """
        path = Path(manifest)
        try:
            document = json.loads(read_text(path))
            parameters = document["guarantee"]["parameters"]
            said = document.get("admitted")
            if said is None:
                of = parameters.get("reuse", {}).get("run_id")
                name = f"; it took those of the run '{of}', name that release's manifest" if of else ""
                raise _refused(f"the manifest has no admitted cells of its own{name}")
            result = cls(
                run_id=str(document["run_id"]),
                lineage=str(said["lineage"]),
                path=path.parent / CELLS,
                sha256=str(said["sha256"]),
                schemes=tuple(tuple(int(level) for level in scheme) for scheme in said["schemes"]),
                columns=tuple((str(name), str(of)) for name, of in said["columns"]),
                published=calibrated(parameters),
                release=release_digest(document),
            )
        except ConfigError:
            raise
        except OSError as error:
            raise _refused(f"the manifest '{path}' cannot be read ({error.strerror}); name that of a release") from None
        except (InputError, ValueError, TypeError, KeyError, AttributeError):
            raise _refused("is not the manifest of a differentially private release") from None
        try:
            _, found = size_and_digest(result.path)
        except OSError as error:
            raise _refused(
                f"'{CELLS}' beside the manifest cannot be read ({error.strerror}); name the manifest in the directory "
                "of the release itself"
            ) from None
        if found != result.sha256:
            raise _refused(f"'{CELLS}' is not the file the manifest names: its SHA-256 is another")
        if planned is not None and result.cells != planned:
            raise _refused(f"'{CELLS}' is not the file the run was planned with")
        return result

    def differences(self, policy: Policy, hierarchies: Mapping[str, Hierarchy] | None, *, unit: str) -> Iterator[Fault]:
        """Yield what the policy has otherwise than the release that admitted the cells.

        Parameters
        ----------
        hierarchies : mapping of attribute to Hierarchy, optional
            Compared if given.
        unit : str
            What the policy's release protects.
        """
        of = f"as for the release '{self.run_id}', whose admitted cells guarantee.reuse takes"
        if policy.ledger is not None and lineage_name(policy.ledger.lineage) != lineage_name(self.lineage):
            yield Fault("ledger.lineage", f"must be '{self.lineage}', {of}. Got '{policy.ledger.lineage}'")
        if unit != self.published.unit:
            rule = f"must protect what was protected then: '{self.published.unit}'. Got '{unit}'"
            yield Fault("table.entity_id", rule)
        names = [name for name, _ in self.columns]
        if list(policy.quasi_identifiers) != names:
            yield Fault("columns", f"must have the quasi-identifiers {', '.join(names)} in that order, {of}")
        elif hierarchies is not None:
            for name, known in self.columns:
                if hierarchies[name].fingerprint != known:
                    yield Fault(f"columns.{name}.hierarchy", f"must be the same hierarchy {of}; it is another")
        dp = policy.guarantee
        assert isinstance(dp, ReusingDp)
        if dp.schemes is not None and tuple(map(tuple, dp.schemes)) != self.schemes:
            yield Fault("guarantee.schemes", f"must be the same schemes in the same order {of}; or leave them out")


def refuse_unpaid(policy: Policy, planned: ReusedSet, ledger: Ledger) -> None:
    """Refuse cells that no committed run of the lineage paid for, or that are not those it published.

    Raises
    ------
    BudgetError
        If the ledger does not know the run as committed, or knows another mechanism or another release of it.
    """
    assert isinstance(policy.guarantee, ReusingDp)
    reused = Reused.read(policy.guarantee.reuse, planned=planned)
    for run in ledger.balance(reused.lineage).runs:
        if run.run_id == reused.run_id and run.state == "withdrawn":
            raise BudgetError(
                f"{_KEY}: the release of run id '{reused.run_id}' was withdrawn, and its admitted cells with it. Fix: "
                "name another release, or leave guarantee.reuse out."
            )
        if run.run_id == reused.run_id and run.state == "committed":
            try:
                paid = calibrated_of(run.mechanism)
            except InputError:
                continue
            if paid.parameters == reused.published.parameters:
                if run.release == reused.release:
                    return
                raise BudgetError(
                    f"{_KEY}: the manifest is not that of the release the ledger has as committed for run id "
                    f"'{reused.run_id}': it, or a file that it names, was changed after publication. Restore the "
                    "release from a copy."
                )
    raise BudgetError(
        f"{_KEY}: the ledger has no committed run '{reused.run_id}' of the lineage '{reused.lineage}' with the "
        "manifest's mechanism; admitted cells may be used again only where they were paid for."
    )


def published_cells(
    path: Path, policy: Policy, hierarchies: Mapping[str, Hierarchy], schemes: Sequence[Sequence[int]]
) -> dict[str, Any]:
    """Return what a manifest says of the file of admitted cells, enough to use them again.

    Parameters
    ----------
    path : Path
        The file.
    hierarchies : mapping of attribute to Hierarchy
        Public, as all are under differential privacy.
    """
    assert policy.ledger is not None
    size, digest = size_and_digest(path)
    return {
        "file": path.name,
        "bytes": size,
        "sha256": digest,
        "lineage": policy.ledger.lineage,
        "schemes": [list(scheme) for scheme in schemes],
        "columns": [[name, hierarchy.fingerprint] for name, hierarchy in hierarchies.items()],
    }


def _refused(rule: str) -> ConfigError:
    return ConfigError([Fault(_KEY, rule)])
