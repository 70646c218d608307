"""The files in which an intruder searches, and who is who in them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from privrisk_spark.engine import schemas
from privrisk_spark.engine.batches import Batches
from privrisk_spark.errors import InputError, InternalError, SchemaError
from privrisk_spark.extensions.attack.pipeline.opened import Opened, persons_of
from privrisk_spark.extensions.attack.planning.attacks import (
    HIS_TABLE,
    PROTECTED,
    SHARE,
    known_as_they_are,
    read_policy,
)
from privrisk_spark.extensions.attack.policy import attack_of
from privrisk_spark.extensions.attack.stages.distance import drawn
from privrisk_spark.extensions.attack.stages.persons import (
    Persons,
    collect_known_persons,
    collect_nameless,
    with_persons,
)
from privrisk_spark.extensions.attack.stages.protected import (
    Tuples,
    collect_decided,
    collect_repeated_ids,
    collect_shown,
    collect_tuples,
    decided_forms,
    knowing,
    named_forms,
    of_his_table,
    of_labels,
    people,
)
from privrisk_spark.kernels.arrays import FloatArray
from privrisk_spark.kernels.recoding.listed import keys_of, places_of
from privrisk_spark.pipelines.run import ResultRun
from privrisk_spark.runs.progress import warn_of_one_row
from privrisk_spark.stages.assessing.classes import Layout
from privrisk_spark.stages.assessing.sources import Release, Vocabulary, open_released_rows
from privrisk_spark.tables.materialize import collect_codes


def encode(run: ResultRun, opened: Opened) -> tuple[Batches, int]:
    """Stage: the original table as codes, and its rows."""
    with run.progress.stage("encode") as stage:
        unique = run.policy.table.record_id is not None
        rows, n_rows = collect_codes(
            run.scratch,
            opened.sources.table,
            read_policy(run.policy),
            opened.hierarchies,
            run.place,
            given=opened.sources.given,
            unique=unique,
        )
        if not n_rows:
            raise SchemaError("table: it has no rows.")
        warn_of_one_row(n_rows)
        stage.sentence = "Encoded every value as an integer code."
    return rows, n_rows


@dataclass(frozen=True, eq=False)
class Protected:
    """The two files in which an intruder may search, and who is who in them.

    Attributes
    ----------
    rows : Tuples
        Of the protected table.
    present : ndarray of float64, shape (p,)
        Probability that somebody with the form of each is in the protected table.
    people : Tuples
        Whom the intruder knows, as he knows them.
    known, shown : Tuples
        Of the people who are tried, and of the rows of the protected table that are.
    records : Batches or None
        Those that are tried: what is known of each beside its protected form. None where it is not known of which
        record each row is.
    persons : Persons or None
        Whose the rows of both files are, where persons may have several.
    everybody, tried : Batches
        Whom the intruder knows, and of these those who are tried: ``record_id``, ``q<j>``.
    whole : bool
        Whether all records are tried, and it is known of each whether it is in the protected table.
    strangers : int
        Rows of the protected table whose id the original table lacks, if all of its records are tried.
    """

    rows: Tuples
    present: FloatArray
    people: Tuples
    known: Tuples
    shown: Tuples
    records: Batches | None
    persons: Persons | None
    everybody: Batches
    tried: Batches
    whole: bool
    strangers: int = 0

    @property
    def told(self) -> Batches:
        """As :attr:`records`, for attacks that are tried only where it is known whose each row is."""
        if self.records is None:
            raise InternalError("An attack that needs to know of which record each row is was tried without that.")
        return self.records

    @property
    def released(self) -> FloatArray:
        """Probability that the row of one of the people of each shown tuple is in the protected table."""
        return self.present[places_of(keys_of(self.rows.nodes), self.shown.nodes)]


def protect(run: ResultRun, opened: Opened, encoded: Batches) -> Protected:
    """Stage: collect the distinct rows of both files, and bring people together with their rows."""
    with run.progress.stage("protect") as stage:
        asked, most = attack_of(run.policy), run.policy.counting.sorted_vectors
        trees, k = list(opened.known.values()), len(opened.known)
        of_rows, of_persons = asked.truth == "rows", run.policy.table.entity_id is not None
        one_by_one = opened.decisions is None and of_rows
        released = rows_in(opened.release, opened, identity=one_by_one, persons=of_persons, key=PROTECTED)
        rows = collect_tuples(released, schemas.nodes(k), most=most, key=PROTECTED)
        original = people(encoded, trees, opened.positions)
        his = None if opened.his is None else his_people(opened, original, persons=of_persons)
        everybody = knowing(original, opened.known, asked.intruder) if his is None else his
        of_people = known = collect_tuples(
            everybody, schemas.codes(k), most=most, key="table" if his is None else HIS_TABLE
        )
        draw = partial(drawn, share=asked.intruder.share, seed=asked.intruder.seed)
        tried = draw(everybody)
        if asked.intruder.share < 1:
            known = collect_tuples(tried, schemas.codes(k), most=most, key=SHARE)
        if not of_rows:
            persons = None if asked.truth is None else Persons(everybody, released)
            shown = rows
            if persons is not None:
                collect_nameless(released, PROTECTED)
                collect_known_persons(tried, released)
                shown = collect_tuples(draw(released), schemas.nodes(k), most=most, key=SHARE)
            stage.sentence = f"The protected table has {rows.total:,} rows; it is not known of which records they are."
            return Protected(
                rows, np.ones(len(rows.rows)), of_people, known, shown, None, persons, everybody, tried, False
            )
        some = draw(original)
        if opened.decisions is None:
            present, forms, every = np.ones(len(rows.rows)), named_forms(some, released, k), released
        else:
            decided = partial(
                decided_forms,
                decisions=opened.decisions,
                hierarchies=opened.known,
                as_they_are=known_as_they_are(run.policy),
            )
            every = decided(original)
            of_decisions = collect_decided(every, rows, most=most)
            if (of_decisions < rows.rows).any():
                raise InputError(
                    f"{PROTECTED}: the release has rows that the vault's decisions do not give: the table, its "
                    "hierarchies or the vault are no longer those it was made with. Release again."
                )
            present, forms = rows.rows / of_decisions, decided(some)
        forms = knowing(forms, opened.known, asked.intruder) if his is None else of_his_table(forms, draw(his), k)
        persons = None
        if of_persons:
            named = schemas.ENTITY in released.schema.fieldNames()
            persons = Persons(everybody, every if named else with_persons(every, original, strangers=False))
        # The join is read once, and not again for each attack.
        records = Batches.of_frame(run.scratch.write_frame(forms.frame(), "records"))
        shown = collect_shown(records, rows, most=most)
        stage.sentence = f"The protected table has {rows.total:,} rows, {len(rows.rows):,} distinct ones."
    every_one = asked.intruder.share == 1
    whole = every_one and bool((present == 1).all())
    strangers = rows.total - shown.total if every_one and one_by_one else 0
    return Protected(rows, present, of_people, known, shown, records, persons, everybody, tried, whole, strangers)


def his_people(opened: Opened, original: Batches, *, persons: bool) -> Batches:
    """Whom the intruder has in a table of his own; persons by its own column, or by the ids of their records."""
    assert opened.his is not None
    rows = rows_in(opened.his, opened, identity=True, persons=persons, key=HIS_TABLE)
    if schemas.ENTITY in rows.schema.fieldNames():
        collect_nameless(rows, HIS_TABLE)
    elif persons:
        rows = with_persons(rows, original, strangers=True)
    return of_labels(rows, len(opened.known))


def rows_in(
    release: Release,
    opened: Opened,
    *,
    identity: bool,
    key: str,
    persons: bool = False,
    values: Sequence[Vocabulary] = (),
) -> Batches:
    """Rows of a table of labels, the known columns as nodes.

    Parameters
    ----------
    identity : bool
        Carry the record id.
    key : str
        Of the policy, for messages.
    persons : bool
        Carry the persons, where the table names them.
    values : sequence of Vocabulary
        Of sensitive columns whose codes are carried.

    Raises
    ------
    SchemaError
        If two rows of a table that is told apart by ids have the same one.
    """
    layout = Layout(tuple(tree.n_nodes for tree in opened.known.values()), tuple(one.count for one in values))
    person = persons_of(release) if persons else None
    rows = open_released_rows(
        release, opened.known, values, layout, identity=identity, person=person, numeric=opened.numeric
    )
    again = collect_repeated_ids(rows) if identity else 0
    if again:
        raise SchemaError(
            f"{key}.record_id: every row must have an id of its own, and {again:,} have none or one that another has. "
            "Mend the column."
        )
    return rows
