"""One charge, one draw: the steps by which a run spends what it was charged, in their order (docs/charge.md).

Each step is one transaction of the ledger, or one change of the vault that is whole or not there. An attempt may stop
between any two; whoever runs it again takes every step again, and what was recorded lets it pass only if it agrees.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeVar

from privrisk_spark.ledger.commitments import refuse_other_place
from privrisk_spark.ledger.ledger import Ledger
from privrisk_spark.ledger.records import Reservation
from privrisk_spark.ledger.request import Request
from privrisk_spark.runs.keystore import key_commitment
from privrisk_spark.runs.witnesses import Seen

__all__ = ["Charge", "Keys"]

T = TypeVar("T")


class Keys(Protocol):
    """Where the release key of a run is kept, such as `privrisk_spark.runs.keystore.VaultKey`."""

    def check_reference(self) -> None:
        """Raise InputError if the key is given by a reference that leads to none."""

    def obtain(self, *, draw: bool) -> bytes:
        """Return the key of the run, the same at every call until it is destroyed; draw it if it may be."""

    def destroy(self) -> None:
        """Destroy the key, unless it is somebody else's to keep."""


@dataclass(frozen=True)
class Charge:
    """One attempt of a run, as the ledger sees it.

    Attributes
    ----------
    place : str
        Where the attempt publishes, resolved.
    seen : Seen or None
        What output and vault knew of the ledger when the attempt began.
    witness : callable or None
        Keeps, in the vault, what the ledger ended in; called before anything is read, and before anything is visible.
    """

    ledger: Ledger
    request: Request
    place: str
    keys: Keys
    seen: Seen | None = None
    witness: Callable[[Reservation], object] | None = None

    def reserve(self) -> Reservation:
        """Charge the run, or find it charged.

        Raises
        ------
        InputError
            If a key that is given by reference cannot be read.
        BudgetError
            As `Ledger.reserve`, or if it was begun for another place.
        """
        self.keys.check_reference()
        made = self.ledger.reserve(self.request, seen=self.seen)
        refuse_other_place(made.run_id, made.place, self.place)
        return made

    def begin(self, made: Reservation) -> bytes:
        """Return the key, after the ledger holds the run to it and to the place; only now may the table be read.

        Parameters
        ----------
        made : Reservation
            What `reserve` returned: a run that is bound has a key and gets no other.

        Raises
        ------
        BudgetError
            If the run was begun with another key, or for another place.
        """
        key = self.keys.obtain(draw=made.place is None)
        self._witnessed(self.ledger.bind(**self._run, key=key_commitment(key, **self._run), place=self.place))
        return key

    def pin(self, snapshot: str) -> None:
        """Hold the run to what was read, and the lineage to its files; only now may anything be drawn.

        Raises
        ------
        BudgetError
            If it first read something else, or another lineage holds a file.
        """
        self.ledger.pin(**self._run, snapshot=snapshot, files=self.request.files)

    def publish(self, release: str, show: Callable[[], T]) -> T:
        """Commit the run to what it publishes, then make that visible, then destroy the key.

        Parameters
        ----------
        release : str
            Digest of all that becomes visible.
        show : callable
            Makes it visible; its result is returned.

        Raises
        ------
        BudgetError
            If the run was voided meanwhile, or is committed to something else.
        """
        self._witnessed(self.ledger.commit(**self._run, release=release))
        shown = show()
        self.keys.destroy()
        return shown

    def confirm(self, release: str) -> None:
        """Hold a release that is visible already against the ledger, then destroy the key, if it is still there.

        Parameters
        ----------
        release : str
            Digest of what lies at the place.

        Raises
        ------
        BudgetError
            If it is not the one release of this run, or another one is asked for.
        """
        self.ledger.confirm(self.request, place=self.place, release=release)
        self.keys.destroy()

    def _witnessed(self, made: Reservation) -> None:
        if self.witness is not None:
            self.witness(made)

    @property
    def _run(self) -> dict[str, str]:
        return {"lineage": self.request.lineage, "run_id": self.request.run_id}
