"""The words of reports and documents, each with a sentence, its formula and where it is in the code."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from html import unescape


@dataclass(frozen=True)
class Term:
    """A word of the field, as it is used here.

    Attributes
    ----------
    word : str
    means : str
        One or two sentences.
    formula : str
        Empty where there is none.
    where : str
        Module below the package; empty where a word is of no one module.
    others : tuple of str
        Words by which a page is found to use it, besides the word itself.
    """

    word: str
    means: str
    formula: str = ""
    where: str = ""
    others: tuple[str, ...] = ()

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        words = "|".join(re.escape(word) for word in (self.word, *self.others))
        return re.compile(rf"(?<!\w)(?:{words})(?:s|es)?(?!\w)", re.IGNORECASE)

    def used_in(self, text: str) -> bool:
        """Whether a text uses the word."""
        # The pattern is tried at every letter; most words are not there at all.
        lowered = text.lower()
        return any(word.lower() in lowered for word in (self.word, *self.others)) and bool(self._pattern.search(text))


GLOSSARY: tuple[Term, ...] = (
    Term(
        "adversary",
        "Who tries to find people in a release: what is known, gained and risked is assumed by name.",
        where="kernels/adversary/risk.py",
        others=("attacker", "intruder"),
    ),
    Term(
        "budget",
        "What of ε and δ the releases of one lineage may spend together; it is charged before anything is read.",
        "Σ ε_i ≤ ε, Σ δ_i ≤ δ",
        "ledger/account.py",
        others=("privacy budget",),
    ),
    Term(
        "consistent records",
        "Rows of the dictionary that may be the record as it is released; ρ is their number.",
        "ρ, at least 1 for a record that is in the dictionary",
        "kernels/counting/consistent.py",
        others=("consistent rows", "dictionary rows that fit", "ρ"),
    ),
    Term(
        "crowd threshold",
        "The fewest sampled rows that must share a combination of released values before it is published.",
        "published only if n ≥ k",
        "kernels/dp/crowd.py",
    ),
    Term(
        "dictionary",
        "What an attacker knows of people: a table of their quasi-identifiers, or the released table itself.",
        where="planning/dictionaries.py",
    ),
    Term(
        "differential privacy",
        "Whether one row, or one person, is in the table changes the chance of any output by little.",
        "P(M(D) ∈ S) ≤ e^ε P(M(D′) ∈ S) + δ",
        "kernels/dp/crowd.py",
        others=("differentially private",),
    ),
    Term(
        "equivalence class",
        "Records whose released quasi-identifiers are equal: nobody who knows these alone can tell them apart.",
        where="kernels/classes/classes.py",
        others=("class", "released class"),
    ),
    Term(
        "floor",
        "The least utility that every record must keep; a record that cannot keep it is suppressed or the run refused.",
        "u(x) ≥ c",
        "planning/search.py",
        others=("utility floor", "least utility"),
    ),
    Term(
        "frontier",
        "Recodings that no other recoding beats in risk and utility at once; in a lattice, nodes that keep the floor "
        "and have a coarser neighbour that does not.",
        where="kernels/lattice/lattice.py",
    ),
    Term(
        "generalization lattice",
        "All ways to generalize one record: a level for each attribute, ordered by which is coarser in all of them.",
        "Π (h_i + 1) nodes",
        "kernels/lattice/lattice.py",
        others=("lattice",),
    ),
    Term(
        "guarantee",
        "What is claimed of a release and how far: proved, with a proof whose conditions are checked; tested, computed "
        "on this very table; heuristic, a search or an estimate nobody has proved.",
        where="claims.py",
        others=("proved", "tested", "heuristic"),
    ),
    Term(
        "hockey-stick divergence",
        "How much likelier an output is under one law than e^ε times its chance under another, over all outputs: the "
        "smallest δ for an ε.",
        "H(P‖Q) = Σ max(P(o) − e^ε Q(o), 0)",
        "kernels/dp/crowd.py",
        others=("hockey-stick",),
    ),
    Term(
        "identifier",
        "A column that names a person by itself, such as a name or a number of a card; it is never released.",
        where="policy/policy.py",
        others=("direct identifier",),
    ),
    Term(
        "k-anonymity",
        "Every released record is equal to at least k − 1 others in the quasi-identifiers.",
        "every class has at least k records",
        "kernels/recoding/problem.py",
        others=("k-anonymous",),
    ),
    Term(
        "k-map",
        "Every released record fits at least k people of a population, though fewer may be in the table.",
        "ρ ≥ k against the population",
        "kernels/measures/identity.py",
    ),
    Term(
        "keyed draw",
        "A random choice made from a secret key and the record's id, so that a retry of a run makes the same bytes.",
        where="kernels/random/keyed.py",
    ),
    Term(
        "l-diversity",
        "Every class holds at least ℓ well represented values of a sensitive column.",
        where="kernels/classes/diversity.py",
        others=("ℓ-diversity", "ℓ-diverse"),
    ),
    Term(
        "level",
        "How many steps up its hierarchy a value is generalized: 0 as it is, the height suppressed.",
        "0 ≤ x_i ≤ h_i",
        "hierarchies/hierarchy.py",
        others=("generalization level",),
    ),
    Term(
        "lineage",
        "The name under which a ledger counts the releases of one table and its later states together.",
        where="ledger/ledger.py",
    ),
    Term(
        "linkage",
        "Finding which record of one table is the person of another, by what both hold.",
        where="kernels/linkage/nearest.py",
        others=("record linkage", "link"),
    ),
    Term(
        "masking",
        "Changing values so that they are hard to link to a person: noise, microaggregation, rank swapping, PRAM.",
        where="planning/masking.py",
        others=("masked",),
    ),
    Term(
        "microaggregation",
        "Records are put into groups of at least k alike ones, and each value becomes the mean of its group.",
        where="kernels/masking/microaggregation.py",
    ),
    Term(
        "P(re-identified)",
        "The chance that the adversary assumed finds the person, attacks at all, and is right.",
        where="kernels/adversary/risk.py",
        others=("re-identification", "re-identified", "p_reid"),
    ),
    Term(
        "population unique",
        "A person whose quasi-identifiers nobody else in the population has, in the table or not.",
        where="kernels/measures/population_uniques.py",
    ),
    Term(
        "probability that a record is found",
        "The chance to pick the right person among all that fit the released record, each being as likely.",
        "1/ρ",
        "kernels/disclosure/risk.py",
        others=("prosecutor risk", "probability that a record is found", "identification probability"),
    ),
    Term(
        "quasi-identifier",
        "A column that does not name a person, but may find one together with others, as birth date and postcode do.",
        where="policy/policy.py",
    ),
    Term(
        "recoding",
        "Replacing values by coarser ones: full-domain, one level a column for all rows; local, each class its own.",
        where="kernels/recoding/problem.py",
        others=("scheme",),
    ),
    Term(
        "sample unique",
        "A record no other record of the table equals in the quasi-identifiers.",
        where="kernels/measures/identity.py",
        others=("unique record", "alone in their class", "alone in its class"),
    ),
    Term(
        "sensitive column",
        "What an attacker wants to learn of a person, such as a diagnosis; it is released as it is, or made coarser.",
        where="policy/policy.py",
        others=("sensitive value", "sensitive"),
    ),
    Term(
        "sensitivity",
        "What it costs the person if the released values are known to be theirs, by the weights of the policy.",
        "Φ(x), such as Σ w_j over the disclosed attributes",
        "kernels/disclosure/sensitivity.py",
    ),
    Term(
        "special unique",
        "A record that is unique by few of its values already: the fewer, the easier it is found.",
        where="kernels/measures/special_uniques.py",
        others=("SUDA",),
    ),
    Term(
        "suppression",
        "Releasing nothing of a value, or of a whole record; the root of every hierarchy, written *.",
        "⊥",
        "hierarchies/hierarchy.py",
        others=("suppressed",),
    ),
    Term(
        "surprisal",
        "How surprising it is that a row of the dictionary fits, in nats; risk model III is sensitivity times it.",
        "ln(N/ρ)",
        "kernels/disclosure/risk.py",
        others=("nats",),
    ),
    Term(
        "t-closeness",
        "In every class a sensitive column is distributed nearly as in the whole table.",
        "distance(class, table) ≤ t",
        "kernels/classes/closeness.py",
    ),
    Term(
        "t-frequent",
        "Said of generalized values that at least t rows of the table fit.",
        "T(x) ≥ t",
        "kernels/as_published/frequent_elements.py",
    ),
    Term(
        "utility",
        "What is left of a record's information, by a measure that falls with every generalization.",
        "u(x) = Σ d(node), such as the steps still possible",
        "kernels/disclosure/utility.py",
    ),
    Term(
        "value generalization hierarchy",
        "A tree over the values of a column: leaves are the values, each node above stands for all below it.",
        "n(v) leaves under node v",
        "hierarchies/hierarchy.py",
        others=("hierarchy", "hierarchies"),
    ),
    Term(
        "vault",
        "The directory of a run that must never be published: exact risks, decisions, the full report.",
        where="runs/vaults.py",
    ),
    Term(
        "weighted risk",
        "The probability that a record is found, times what that costs: it has the unit of the weights, and is no "
        "probability where these exceed 1.",
        "Φ/ρ",
        "kernels/disclosure/risk.py",
    ),
)
"""In the order of the alphabet."""


def words_of(page: str) -> Sequence[Term]:
    """Return the terms that a page uses, in the order of the glossary.

    Parameters
    ----------
    page : str
        HTML; what is inside of tags, style and pictures does not count.
    """
    text = re.sub(r"<(style|svg)\b.*?</\1>", " ", page, flags=re.DOTALL)
    text = unescape(re.sub(r"<[^>]*>", " ", text))
    return [term for term in GLOSSARY if term.used_in(text)]
