"""Links by somebody who has seen true pairs, and has learned from them by which distance people are found."""

from __future__ import annotations

from functools import partial

from privrisk_spark.engine import schemas
from privrisk_spark.extensions.attack.pipeline.links import compared_by
from privrisk_spark.extensions.attack.pipeline.opened import Opened
from privrisk_spark.extensions.attack.pipeline.protected import Protected
from privrisk_spark.extensions.attack.planning.learned_findings import learned_distance
from privrisk_spark.extensions.attack.policy import attack_of
from privrisk_spark.extensions.attack.results.inferences import LearnedDistance
from privrisk_spark.extensions.attack.stages.distance import store_file
from privrisk_spark.extensions.attack.stages.learned import collect_learned, collect_sample, collect_sample_of_persons
from privrisk_spark.extensions.attack.stages.protected import of_both
from privrisk_spark.pipelines.run import ResultRun


def learn(run: ResultRun, opened: Opened, protected: Protected) -> tuple[LearnedDistance, ...]:
    """Stage: learn distances from some people's rows, and try them on others; nothing where there are no two."""
    with run.progress.stage("learn") as stage:
        asked, k = attack_of(run.policy), len(opened.known)
        rows = store_file(
            run.scratch.directory("learned"),
            protected.rows,
            compared_by(run, opened, protected),
            protected.present,
            # Taken for the nearest value it covers, a person's own cell is at no distance by any weights.
            reading="uniform" if "uniform" in asked.cells else asked.cells[-1],
        )
        draw = (
            collect_sample
            if protected.persons is None
            else partial(collect_sample_of_persons, persons=protected.persons)
        )
        sample = draw(
            of_both(protected.told),
            known=schemas.codes(k),
            own=schemas.nodes(k),
            training=asked.learned.training,
            held_out=asked.learned.held_out,
            seed=asked.intruder.seed,
        )
        if sample is None:
            stage.sentence = "Fewer than two people are in the protected table: nothing can be learned."
            return ()
        fitted = collect_learned(run.scratch, rows, sample, asked.learned.distances, name="learned")
        stage.sentence = f"Learned {len(fitted)} distances from {len(sample.training.known):,} people and their rows."
        stage.status = "tested"
    return tuple(learned_distance(run.policy, one) for one in fitted)
