"""Public names, for type checkers and for ``__init__.py``, which loads them on demand."""

# isort: off
from privrisk_spark import errors as errors
from privrisk_spark.api.assessing import Assessed as Assessed, assess as assess
from privrisk_spark.extensions.attack.api import Attacked as Attacked, attack as attack
from privrisk_spark.api.auditing import Audited as Audited, audit as audit
from privrisk_spark.api.builders import dates as dates, file as file, flat as flat, identifier as identifier
from privrisk_spark.api.builders import insensitive as insensitive, intervals as intervals, mask as mask, order as order
from privrisk_spark.api.builders import (
    quasi_identifier as quasi_identifier,
    sensitive as sensitive,
    tree as tree,
    weight as weight,
)
from privrisk_spark.api.composing import Composed as Composed, compose as compose
from privrisk_spark.api.dictionary_curves import Curves as Curves, curves as curves
from privrisk_spark.api.dry_run import plan as plan, validate as validate
from privrisk_spark.api.fitting import Fitted as Fitted, approve as approve, fit as fit
from privrisk_spark.extensions.perturb.api import mask_table as mask_table
from privrisk_spark.api.policies import Policy as Policy, load as load
from privrisk_spark.api.releasing import Released as Released, release as release, withdraw as withdraw
from privrisk_spark.extensions.network.api import Shared as Shared, share as share
from privrisk_spark.api.suggesting import Suggested as Suggested, profile as profile, suggest_policy as suggest_policy
from privrisk_spark.api.workspace import session as session
from privrisk_spark.results.page import Page as Page
from privrisk_spark.results.plan import Plan as Plan
from privrisk_spark.results.validation import Validation as Validation
from privrisk_spark.results.withdrawal import Withdrawal as Withdrawal

__all__: list[str]
__version__: str
