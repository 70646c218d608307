"""Curves of risk over what the attacker knows (F12 Figs 3.1 and 3.3), as figures for a program and for a person."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from privrisk_spark.claims import Status
from privrisk_spark.json_values import as_json
from privrisk_spark.kernels.disclosure.risk import RiskModel
from privrisk_spark.kernels.lattice.lattice import TOLERANCE
from privrisk_spark.kernels.search.dictionary_curves import DictionaryCurves
from privrisk_spark.results.page import html_table

if TYPE_CHECKING:
    import pandas as pd

RISK_UNITS: dict[RiskModel, str] = {"I": "expected loss", "II": "probability", "III": "sensitivity times nats"}


@dataclass(frozen=True, eq=False)
class CurveResult:
    """The curves of one table and dictionary.

    Attributes
    ----------
    dictionary : str
        Which dictionary grows, in words.
    estimate : str
        What the decisions of F12 Fig 3.3 are made against, in words.
    model : {"I", "II", "III"}
    curves : DictionaryCurves
        Of S samples and F floors.
    shares : tuple of S float
        Share of the dictionary in each sample, by its number: s tenths or so.
    records, distinct : int
        Rows of the table, and distinct ones among them.
    used_records, used_distinct : int
        Those the means are taken over.
    notes : tuple of str
        What a reader must know besides.
    """

    title: str
    run_id: str
    created: str
    version: str
    dictionary: str
    estimate: str
    model: RiskModel
    utility_unit: str
    curves: DictionaryCurves
    shares: tuple[float, ...]
    records: int
    distinct: int
    used_records: int
    used_distinct: int
    notes: tuple[str, ...] = ()

    status: ClassVar[Status] = "tested"
    """Of every figure: decisions of the records that `basis` names are exact."""

    json_keys = (
        "run_id", "name:title", "date:created", "version", "dictionary", "estimate", "risk_model:model",
        "risk_unit:unit", "utility_unit", "status", "basis", "records", "distinct_records:distinct",
        "evaluated_records:used_records", "evaluated_distinct_records:used_distinct", "notes", "arrays",
        "measures",
    )  # fmt: skip

    @property
    def arrays(self) -> dict[str, object]:
        """Shares of the dictionary, and the arrays of the curves."""
        return {"shares": self.shares, **vars(self.curves)}

    @property
    def sampled(self) -> bool:
        """Whether the means are over a sample of the distinct records."""
        return self.used_distinct != self.distinct

    @property
    def unit(self) -> str:
        """Unit of the risk."""
        return RISK_UNITS[self.model]

    @property
    def basis(self) -> str:
        """What the means are taken over, in a sentence."""
        if not self.sampled:
            return (
                f"Means over all {self.records:,} records, by their {self.distinct:,} distinct combinations of values."
            )
        return (
            f"Means over a sample: {self.used_distinct:,} of the {self.distinct:,} distinct records, drawn by a hash "
            f"of their codes and weighted by how often they occur; together {self.used_records:,} of {self.records:,} "
            "records. Each of them is decided exactly; the means are theirs, not those of all records."
        )

    @property
    def below(self) -> int:
        """Points below the line of F12 Fig 3.3: the true risk exceeds the estimated one, which is no bound then."""
        return int(np.count_nonzero(self.curves.true > self.curves.estimated * (1 + TOLERANCE)))

    def points(self) -> Iterator[tuple[int, int]]:
        """Every sample with every floor, the smallest sample first."""
        for s in range(len(self.shares)):
            for f in range(len(self.curves.floors)):
                yield s, f

    def measures(self) -> list[dict[str, Any]]:
        """Every figure as ``{name, value, unit, parameters, status}``, JSON-safe."""
        curves, found = self.curves, []

        def add(name: str, value: float | int, unit: str, **parameters: object) -> None:
            figure = {"name": name, "value": value, "unit": unit, "parameters": parameters, "status": self.status}
            found.append(as_json(figure))

        for f, floor in enumerate(curves.floors):
            by_floor = {"utility_at_least": floor, "risk_model": self.model}
            add("mean_estimated_risk", curves.estimated[f], self.unit, **by_floor)
            add("infeasible_records", curves.infeasible[f], "records", utility_at_least=floor)
        for s, share in enumerate(self.shares):
            by_share = {"share": share, "dictionary_rows": curves.dictionary_rows[s]}
            add("absent_records", curves.absent[s], "records", **by_share)
            for f, floor in enumerate(curves.floors):
                parameters = {"utility_at_least": floor, **by_share, "risk_model": self.model}
                add("mean_least_risk", curves.minimal[s, f], self.unit, **parameters)
                add("mean_true_risk", curves.true[s, f], self.unit, **parameters)
        add("points_below_the_line", self.below, "points")
        return found

    def to_csv(self) -> str:
        """Return one line per sample and floor, for ``curves.csv``."""
        stream = io.StringIO()
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(_COLUMNS)
        writer.writerows([*map(as_json, numbers), self.status] for numbers in self._numbers())
        return stream.getvalue()

    def to_pandas(self) -> pd.DataFrame:
        """Return one row per sample and floor.

        Returns
        -------
        pandas.DataFrame of shape (n_shares * n_floors, 9)
            ``share``, ``dictionary_rows``, ``utility_at_least``, ``mean_least_risk``, ``mean_true_risk``,
            ``mean_estimated_risk`` (all float64 but the rows), ``infeasible_records``, ``absent_records``, ``status``.
        """
        import pandas as pd  # only who asks for it waits for it

        return pd.DataFrame([[*numbers, self.status] for numbers in self._numbers()], columns=list(_COLUMNS))

    def _numbers(self) -> Iterator[list[float]]:
        curves = self.curves
        for s, f in self.points():
            yield [
                self.shares[s], curves.dictionary_rows[s], curves.floors[f], curves.minimal[s, f],
                curves.true[s, f], curves.estimated[f], curves.infeasible[f], curves.absent[s],
            ]  # fmt: skip

    def _repr_html_(self) -> str:
        head = ("share of the dictionary", *(f"utility at least {floor:g}" for floor in self.curves.floors))
        rows = [(share, *self.curves.minimal[s].tolist()) for s, share in enumerate(self.shares)]
        caption = f"Mean least risk of {self.title} ({self.unit})"
        return html_table(caption, head, rows, notes=(self.basis, *self.notes))


_COLUMNS = (
    "share", "dictionary_rows", "utility_at_least", "mean_least_risk", "mean_true_risk", "mean_estimated_risk",
    "infeasible_records", "absent_records", "status",
)  # fmt: skip
