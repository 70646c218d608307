"""What the search of masks may take."""

from __future__ import annotations

import pytest

from privrisk_spark.errors import InputError
from privrisk_spark.extensions.attack.planning.masks import refuse_windows
from privrisk_spark.extensions.attack.policy import AttackPolicy, Intruder


def test_windows_above_the_limit_name_a_share_that_would_do() -> None:
    """Of half of the people 3 million comparisons: a sixth of them are 1 million."""
    asked = AttackPolicy(exact_pairs=10**6, intruder=Intruder(share=0.5))
    refuse_windows(asked, 10**6)
    with pytest.raises(InputError, match=r"up to 3e\+06 values .* attack.intruder.share=0.1\."):
        refuse_windows(asked, 3 * 10**6)
