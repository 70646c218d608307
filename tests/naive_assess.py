"""Every measure of an assessment by plain Python over lists of rows. Nothing here uses the package.

A row maps columns to labels; a value generalization hierarchy maps each leaf to its path ``(leaf, …, root)``. A label
names one node. A figure is known by its name and what tells it from its like: a column, a threshold, a size, a model.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
from scipy.integrate import quad
from scipy.sparse import csr_array
from scipy.sparse.csgraph import maximum_bipartite_matching
from scipy.stats import binom

Row = Mapping[str, Any]
Paths = Mapping[Any, tuple[Any, ...]]
Figures = dict[tuple[str, Hashable], Any]

TOLERANCE = 1e-9


class Tree:
    """A hierarchy, by labels."""

    def __init__(self, paths: Paths) -> None:
        self.paths = paths
        self.root = next(iter(paths.values()))[-1]
        self.under: dict[Any, set[Any]] = defaultdict(set)
        self.level: dict[Any, int] = {}
        for leaf, path in paths.items():
            for steps, node in enumerate(path):
                self.under[node].add(leaf)
                self.level[node] = max(self.level.get(node, 0), steps)

    def holds(self, node: Any, value: Any) -> bool:
        """Whether a value lies under a node; a value that is suppressed lies under the root only."""
        return node == value or value in self.under[node]


def grouped(rows: Iterable[Row], names: Sequence[str]) -> dict[tuple[Any, ...], list[Row]]:
    found: dict[tuple[Any, ...], list[Row]] = defaultdict(list)
    for row in rows:
        found[tuple(row[name] for name in names)].append(row)
    return dict(found)


def size_of(rows: Sequence[Row], person: str | None) -> int:
    return len(rows) if person is None else len({row[person] for row in rows})


def identity(
    rows: Sequence[Row],
    names: Sequence[str],
    *,
    k: int,
    thresholds: Sequence[float],
    person: str | None = None,
    wild: Sequence[str] = (),
) -> Figures:
    """Class sizes; ``*`` in a wild column may be any value, in another it is equal to its like."""
    classes = grouped(rows, names)

    def alike(one: tuple[Any, ...], other: tuple[Any, ...]) -> bool:
        return all(a == b or (name in wild and "*" in (a, b)) for name, a, b in zip(names, one, other, strict=True))

    fellows = {key: [row for other, held in classes.items() if alike(key, other) for row in held] for key in classes}
    sizes = {key: size_of(fellows[key], person) for key in classes}
    own = {key: size_of(held, person) for key, held in classes.items()}
    people = sum(own.values())
    found: Figures = {
        ("records", None): len(rows),
        ("classes", None): len(classes),
        ("k", None): min(sizes.values()),
        ("uniques", None): sum(own[key] for key, size in sizes.items() if size == 1),
        ("records_below_k", None): sum(own[key] for key, size in sizes.items() if size < k),
        ("prosecutor_max", None): 1 / min(sizes.values()),
        ("prosecutor_mean", None): sum(own[key] / size for key, size in sizes.items()) / people,
    }
    if people != len(rows):
        found["persons", None] = people
    starts = (1, 2, 3, 4, 5, 10, 20, 50, 100, 1000, math.inf)
    for least, end in itertools.pairwise(starts):
        found["records_by_class_size", least] = sum(own[key] for key, size in sizes.items() if least <= size < end)
    found |= separation(rows, names)
    found["unique_share", None] = found["uniques", None] / people
    for threshold in thresholds:
        above = sum(own[key] for key, size in sizes.items() if 1 / size > threshold)
        found["prosecutor_share_above", threshold] = above / people
    return found


def separation(rows: Sequence[Row], names: Sequence[str]) -> Figures:
    """By pairs of rows, of the columns together and each alone."""
    found: Figures = {}
    for of in (None, *names):
        values = [tuple(row[name] for name in names) if of is None else row[of] for row in rows]
        pairs = list(itertools.combinations(values, 2))
        found["distinction", of] = len(set(values)) / len(values)
        found["separation", of] = sum(a != b for a, b in pairs) / len(pairs)
    return found


def population(
    rows: Sequence[Row],
    names: Sequence[str],
    people: Sequence[Row],
    trees: Mapping[str, Tree],
    *,
    thresholds: Sequence[float],
    person: str | None = None,
    times: str | None = None,
) -> Figures:
    """Against a table of people; a column it lacks may be anything, as may what is suppressed in the rows."""
    classes = grouped(rows, names)
    own = {key: size_of(held, person) for key, held in classes.items()}
    sizes = dict.fromkeys(classes, 0)
    for key in classes:
        for one in people:
            fits = all(
                value == trees[name].root or name not in one or trees[name].holds(value, one[name])
                for name, value in zip(names, key, strict=True)
            )
            sizes[key] += fits * (1 if times is None else one[times])
    total = sum(own.values())
    covered = {key: size for key, size in sizes.items() if size}
    singles = [key for key, size in own.items() if size == 1]
    inside = sum(own[key] for key in covered)
    found: Figures = {
        ("k_map", None): min(covered.values()),
        ("uncovered_records", None): total - inside,
        ("contradicted_classes", None): sum(size < own[key] for key, size in covered.items()),
        ("journalist_max", None): 1 / min(covered.values()),
        ("marketer", None): sum(own[key] / size for key, size in covered.items()) / total,
        ("presence_max", None): max(min(own[key] / size, 1) for key, size in covered.items()),
        ("presence_min", None): min(min(own[key] / size, 1) for key, size in covered.items()),
        ("population_uniques", None): sum(sizes[key] == 1 for key in singles),
        ("population_unique_share", None): sum(sizes[key] == 1 for key in singles) / len(singles) if singles else None,
    }
    for threshold in thresholds:
        above = sum(own[key] for key, size in covered.items() if 1 / size > threshold)
        found["journalist_share_above", threshold] = above / inside
    return found


def expected_inverse(f: int, p: float) -> float:
    """``E[1/F | f]`` of a negative binomial F, as an integral: Benedetti and Franconi 1998."""
    if p >= 1:
        return 1 / f
    return float(quad(lambda t: (p * math.exp(-t) / (1 - (1 - p) * math.exp(-t))) ** f, 0, math.inf)[0])


def weighted(rows: Sequence[Row], names: Sequence[str], weight: str, wild: Sequence[str] = ()) -> Figures:
    """From sampling weights of all that a class is compatible with; it stands for no fewer people than that."""
    found, classes = [], grouped(rows, names)
    for key, held in classes.items():
        fellows = [
            row
            for other, those in classes.items()
            if all(a == b or (n in wild and "*" in (a, b)) for n, a, b in zip(names, key, other, strict=True))
            for row in those
        ]
        stands = max(math.fsum(row[weight] for row in fellows), len(fellows))
        found.append((len(held), stands, expected_inverse(len(fellows), len(fellows) / stands)))
    risk = math.fsum(f * one for f, _, one in found)
    return {
        ("weighted_population", None): math.fsum(row[weight] for row in rows),
        ("estimated_journalist_max", "sum of weights"): max(1 / stands for _, stands, _ in found),
        ("individual_risk_max", "negative binomial, sampling weights"): max(one for *_, one in found),
        ("individual_risk_mean", "negative binomial, sampling weights"): risk / len(rows),
        ("expected_reidentifications", "negative binomial, sampling weights"): risk,
    }


def special(rows: Sequence[Row], names: Sequence[str], *, size: int, fraction: float) -> Figures:
    """Minimal sample uniques of every record, over all sets of attributes."""
    k = len(names)
    most = min(size, k)

    def worth(s: int) -> int:
        return math.prod(k - i for i in range(s, min(most, k - 1) + 1))

    alone = {
        subset: {
            i
            for i, row in enumerate(rows)
            if not any(all(other[name] == row[name] for name in subset) for j, other in enumerate(rows) if j != i)
        }
        for n in range(1, most + 1)
        for subset in itertools.combinations(names, n)
    }
    minimal: dict[int, list[int]] = defaultdict(list)
    due: Counter[str] = Counter()
    for subset, records in alone.items():
        for i in records:
            if not any(i in alone[part] for n in range(1, len(subset)) for part in itertools.combinations(subset, n)):
                minimal[i].append(len(subset))
                due.update(dict.fromkeys(subset, worth(len(subset))))

    scores = {i: sum(map(worth, sets)) for i, sets in minimal.items()}
    sizes = Counter(len(held) for held in grouped(rows, names).values())
    singles, pairs = sizes[1], sizes[2]
    dis = singles * fraction / (singles * fraction + 2 * pairs * (1 - fraction)) if singles else 0.0
    q = 1 + (8 - k) / 20
    spread = math.fsum(score**-q for score in scores.values())
    shared = {i: 1 / (1 + singles * (1 / dis - 1) / (score**q * spread)) for i, score in scores.items()}
    found: Figures = {
        ("special_uniques", None): len(minimal),
        ("suda_max", None): max(scores.values(), default=0),
        ("dis_max", None): max(shared.values(), default=0.0),
        ("dis_mean", None): math.fsum(shared.values()) / len(rows),
    }
    for name in names:
        found["suda_contribution", name] = due[name] / sum(scores.values()) if scores else 0.0
    for n in range(1, most + 1):
        found["minimal_uniques", n] = sum(sets.count(n) for sets in minimal.values())
    return found


def attribute(
    rows: Sequence[Row],
    names: Sequence[str],
    column: str,
    domain: Sequence[Any],
    *,
    distance: str,
    tree: Tree | None = None,
    c: float = 3.0,
    person: str | None = None,
) -> Figures:
    """What the classes give away of a column; ``domain`` in order, with None for missing where it is."""

    def counted(held: Sequence[Row]) -> Counter[Any]:
        if person is None:
            return Counter(row[column] for row in held)
        return Counter(value for value, _ in {(row[column], row[person]) for row in held})

    classes = [
        (size_of(held, person), size_of([row for row in held if row[column] is not None], person), counted(held))
        for held in grouped(rows, names).values()
    ]
    table: Counter[Any] = sum((held for *_, held in classes), Counter())
    total = sum(table.values())
    p = {value: table[value] / total for value in domain}

    def moved(q: Mapping[Any, float]) -> float:
        gap = [q[value] - p[value] for value in domain]
        if distance == "equal":
            return math.fsum(max(one, 0) for one in gap)
        if distance == "ordered":
            return math.fsum(abs(math.fsum(gap[: i + 1])) for i in range(len(gap))) / (len(gap) - 1)
        assert tree is not None
        height = max(tree.level.values())
        spread = 0.0
        for level in range(height):
            of_node: dict[Any, float] = defaultdict(float)
            for value, one in zip(domain, gap, strict=True):
                path = tree.paths.get(value, (value, tree.root))
                path = path[:1] + path[:1] * (height + 1 - len(path)) + path[1:]
                of_node[path[level]] += one
            spread += math.fsum(max(one, 0) for one in of_node.values())
        return spread / height

    worst: dict[str, list[float]] = defaultdict(list)
    homogeneous = likely = 0
    for size, with_known, held in classes:
        n = sum(held.values())
        q = {value: held[value] / n for value in domain}
        # The shares are of the persons who hold a known value.
        known = {value: times for value, times in held.items() if value is not None}
        falling = sorted(known.values(), reverse=True) or [0]
        some = max(with_known, 1)
        everybody = falling[0] == some
        worst["p_sensitive"].append(len(known))
        of_known = [times / sum(known.values()) for times in known.values()]
        worst["l_entropy"].append(math.exp(-math.fsum(x * math.log(x) for x in of_known)) if known else 0.0)
        # Persons may hold several values: at least so many hold none of the more frequent ones.
        levels = [m for m in range(1, len(known) + 1) if falling[0] < c * max(some - sum(falling[: m - 1]), 0)]
        worst["l_recursive"].append(max(levels, default=0))
        worst["t_closeness"].append(moved(q))
        worst["alpha"].append(falling[0] / some)
        gains = {value: (q[value] - p[value]) / p[value] for value in domain if p[value]}
        worst["beta_likeness"].append(max(0.0, *gains.values()))
        beyond = any(gain > -math.log(p[value]) + 1e-12 for value, gain in gains.items())
        worst["enhanced_beta_likeness"].append(math.inf if beyond else max(0.0, *gains.values()))
        ratios = [abs(math.log(q[value] / p[value])) if q[value] else math.inf for value in domain if p[value]]
        worst["delta_disclosure"].append(max(ratios))
        worst["delta_disclosure_present"].append(max(ratio for ratio in ratios if ratio < math.inf))
        homogeneous += size * everybody
        likely += size * (falling[0] / some > 0.5 + 1e-12)
    people = sum(size for size, *_ in classes)
    least = {"p_sensitive", "l_entropy", "l_recursive"}
    found: Figures = {(name, column): min(values) if name in least else max(values) for name, values in worst.items()}
    found["homogeneity_share", column] = homogeneous / people
    found["majority_share_above", column] = likely / people
    return found


def joint(
    rows: Sequence[Row], names: Sequence[str], columns: Mapping[str, float], person: str | None = None
) -> Figures:
    """Diversity of each column, given the values of the others; ``columns`` has the c of each."""
    found: Figures = {}
    for column, c in columns.items():
        others = [*names, *(other for other in columns if other != column)]
        domain = list({row[column] for row in rows})
        alone = attribute(rows, others, column, domain, distance="equal", c=c, person=person)
        told = {"p_sensitive": "l_distinct_joint", "l_entropy": "l_entropy_joint", "l_recursive": "l_recursive_joint"}
        found |= {(to, column): alone[name, column] for name, to in told.items()}
    return found


def households(risks: Sequence[float], household: Sequence[Any]) -> tuple[float, float]:
    """Greatest, and mean over the records; None is a household of its own."""
    missed: dict[Any, float] = {}
    keys = [("nobody", i) if of is None else of for i, of in enumerate(household)]
    for key, risk in zip(keys, risks, strict=True):
        missed[key] = missed.get(key, 1.0) * (1 - risk)
    return 1 - min(missed.values()), math.fsum(1 - missed[key] for key in keys) / len(keys)


def numeric(original: Sequence[Sequence[float]], masked: Sequence[Sequence[float]]) -> dict[str, Any]:
    """By column over pairs that are known; of rows of which all are known for correlations."""
    x, y = np.array(original, dtype=float), np.array(masked, dtype=float)
    found: dict[str, Any] = {"il1s": [], "mean_shift": [], "variance_ratio": []}
    known = ~np.isnan(x) & ~np.isnan(y)
    for j in range(x.shape[1]):
        a, b = x[known[:, j], j], y[known[:, j], j]
        s = np.std(a, ddof=1)
        found["il1s"].append(np.mean(np.abs(a - b)) / (math.sqrt(2) * s))
        found["mean_shift"].append((np.mean(b) - np.mean(a)) / s)
        found["variance_ratio"].append(np.var(b) / np.var(a))
    if x.shape[1] == 1:
        return found
    whole = known.all(axis=1)
    r, q = (np.corrcoef(side[whole], rowvar=False) for side in (x, y))
    upper = np.triu_indices(x.shape[1], 1)
    found["correlation_change"] = float(np.mean(np.abs(r[upper] - q[upper])))
    eigen = [np.sort(np.linalg.eigvalsh(side)) for side in (r, q)]
    found["eigenvalue_change"] = float(np.mean(np.abs(eigen[0] - eigen[1])))
    return found


def sizes_utility(
    rows: Sequence[Row], names: Sequence[str], *, k: int, label: str | None, suppressed: tuple[Any, ...]
) -> Figures:
    classes = grouped(rows, names)
    n = len(rows)
    charge = sum(len(held) * (n if len(held) < k or key == suppressed else len(held)) for key, held in classes.items())
    found: Figures = {("c_avg", None): n / len(classes) / k, ("discernibility", None): charge}
    if label is not None:
        minority = charged = 0
        for key, held in classes.items():
            others = len(held) - max(Counter(row[label] for row in held).values())
            charged += others * len(held)
            minority += len(held) if key == suppressed else others
        found |= {("classification_metric", None): minority / n, ("classification_penalty", None): charged}
    return found


def cells(rows: Sequence[Row], names: Sequence[str], trees: Mapping[str, Tree]) -> Figures:
    """What the cells of a release lose."""
    losses: dict[str, Callable[[Tree, Any], float]] = {
        "precision": lambda tree, node: tree.level[node] / max(tree.level.values()),
        "generalized_information_loss": lambda tree, node: len(tree.under[node]) / len(tree.paths),
        "iyengar_loss": lambda tree, node: (len(tree.under[node]) - 1) / max(len(tree.paths) - 1, 1),
        "gcp": lambda tree, node: 0.0 if len(tree.under[node]) == 1 else len(tree.under[node]) / len(tree.paths),
    }
    found: Figures = {}
    for name, loss in losses.items():
        means = {of: math.fsum(loss(trees[of], row[of]) for row in rows) / len(rows) for of in names}
        means[None] = math.fsum(means.values()) / len(names)  # type: ignore[index]
        for of, mean in means.items():
            found[name, of] = 1 - mean if name == "precision" else mean
    found["loss", None] = math.prod(1 + found["iyengar_loss", of] for of in names) ** (1 / len(names)) - 1
    volumes = [math.prod(len(trees[of].under[row[of]]) for of in names) for row in rows]
    found["penalty_mean", None] = math.fsum(1 - 1 / volume for volume in volumes) / len(rows)
    return found


def divergence(table: Sequence[Row], release: Sequence[Row], names: Sequence[str], trees: Mapping[str, Tree]) -> float:
    """Each released row is spread evenly over its cell."""
    total = 0.0
    for key, held in grouped(table, names).items():
        falls = math.fsum(
            1 / math.prod(len(trees[of].under[row[of]]) for of in names)
            for row in release
            if all(trees[of].holds(row[of], value) for of, value in zip(names, key, strict=True))
        )
        if not falls:
            return math.inf
        p, q = len(held) / len(table), falls / len(release)
        total += p * math.log(p / q)
    return total


def entropy(pairs: Sequence[tuple[Row, Row]], names: Sequence[str], trees: Mapping[str, Tree]) -> Figures:
    found: Figures = {}
    for of in names:
        times = Counter(original[of] for original, _ in pairs)
        lost = []
        for original, released in pairs:
            here = sum(n for value, n in times.items() if value in trees[of].under[released[of]])
            same = original[of] == released[of]
            lost.append(0.0 if same else math.log2(here / times[original[of]]))
        found["non_uniform_entropy", of] = math.fsum(lost) / len(lost)
    found["non_uniform_entropy", None] = math.fsum(found["non_uniform_entropy", of] for of in names) / len(names)
    return found


def concealment(pairs: Sequence[tuple[Row, Row]], names: Sequence[str], trees: Mapping[str, Tree]) -> Figures:
    """Edges where a released record fits an original one; a match is an edge some assignment of all records has."""
    n = len(pairs)
    fits = np.array(
        [
            [all(trees[of].holds(released[of], original[of]) for of in names) for _, released in pairs]
            for original, _ in pairs
        ]
    )
    matches = np.zeros(n, dtype=int)
    for i, j in zip(*np.nonzero(fits), strict=True):
        rest = csr_array(np.delete(np.delete(fits, i, axis=0), j, axis=1).astype(np.int8))
        matches[i] += int((maximum_bipartite_matching(rest) >= 0).sum()) == n - 1
    one_k, k_one = int(fits.sum(axis=1).min()), int(fits.sum(axis=0).min())
    return {
        ("one_k", None): one_k,
        ("k_one", None): k_one,
        ("k_k", None): min(one_k, k_one),
        ("k_concealment", None): int(matches.min()),
        ("k_confusion", None): min(sum(1 for fit in of if fit and 1 / sum(of) > 0) for of in fits.tolist()),
    }


def intervals(
    original: Sequence[float | None],
    masked: Sequence[float | None],
    everyone: Sequence[float | None],
    p: float,
    of: str,
) -> Figures:
    """Of pairs; ranks are those of every masked value, the deviation that of every original one."""
    ranked = sorted(value for value in everyone if value is not None)
    known = [value for value in original if value is not None]
    mean = math.fsum(known) / len(known)
    deviation = math.sqrt(math.fsum((value - mean) ** 2 for value in known) / len(known))
    w = p * len(ranked) / 200
    rank = close = compared = 0
    for one, other in zip(original, masked, strict=True):
        if one is None or other is None:
            continue
        compared += 1
        places = [i for i, value in enumerate(ranked) if value == other]
        middle = (places[0] + places[-1]) / 2
        low = ranked[max(math.ceil(middle - w - 1e-9), 0)]
        high = ranked[min(math.floor(middle + w + 1e-9), len(ranked) - 1)]
        rank += low <= one <= high
        close += abs(one - other) <= p * deviation / 100
    return {
        ("rid", of): rank / compared,
        ("sdid", of): close / compared,
        ("interval_missing", of): len(original) - compared,
    }


class Adversary:
    """Who attacks while it pays (Xia et al. 2015), by recursion over what is left and what was paid."""

    def __init__(self, *, fines: int | None = 1, exploit: float = 10.0, gamma: float = 0.9) -> None:
        self.prior, self.gain, self.penalty, self.access_cost = 0.63, 8000.0, 10_000.0, 100.0
        self.fines, self.exploit, self.gamma = fines, exploit, gamma
        self.detected = 1 / (1 + math.exp(4.59))
        self.q = cache(self._q)  # type: ignore[method-assign]

    def success(self, g: int, r: int) -> float:
        return 1 / (r + g * (1 - self.prior) / self.prior)

    def paid(self, p: int) -> int:
        return 0 if self.fines is None else min(p + 1, self.fines)

    def _q(self, g: int, r: int, p: int) -> float:
        s, d = self.success(g, r), self.detected
        fine = self.penalty if self.fines is None or p < self.fines else 0.0
        after = (1 - d) * self.value(g, r - 1, p) + d * self.value(g, r - 1, self.paid(p))
        return -self.exploit + self.gamma * (s * self.gain - d * fine + (1 - s) * after)

    q = _q

    def value(self, g: int, r: int, p: int) -> float:
        return 0.0 if r == 0 else max(0.0, self.q(g, r, p))

    def linked(self, g: int) -> float:
        return self.gamma * self.value(g, g, 0) if g else 0.0

    def known(self, g: int) -> float:
        return -self.access_cost + self.gamma * self.linked(g)

    def believed(self, people: int, density: float, last: int) -> float:
        sums = math.fsum(binom.pmf(k, people, density) * self.linked(k) for k in range(1, last + 1))
        return -self.access_cost + self.gamma * sums

    def succeeds(self, g: int) -> float:
        if g == 0 or self.linked(g) <= TOLERANCE:
            return 0.0
        mass, total = {0: 1.0}, 0.0
        for r in range(g, 0, -1):
            s, d = self.success(g, r), self.detected
            mass = {p: m for p, m in mass.items() if self.q(g, r, p) > TOLERANCE}
            total += s * math.fsum(mass.values())
            left: dict[int, float] = defaultdict(float)
            for p, m in mass.items():
                left[p] += m * (1 - s) * (1 - d)
                left[self.paid(p)] += m * (1 - s) * d
            mass = dict(left)
        return total

    def once(self, g: int) -> float:
        if g == 0:
            return 0.0
        pays = self.gain * self.prior / g - self.detected * self.penalty - self.access_cost - self.exploit
        return self.prior / g if pays > 0 else 0.0

    def attacks(self, groups: Mapping[int, int], *, people: int | None = None, last: int = 60) -> Figures:
        """Over records by group size; ``people`` if the adversary only knows the density of groups among them."""
        payoff = {g: self.known(g) if people is None else self.believed(people, g / people, last) for g in groups}
        enters = {g: payoff[g] > TOLERANCE for g in groups}
        chance = {g: self.succeeds(g) if enters[g] else 0.0 for g in groups}
        records = sum(groups.values())
        mean = math.fsum(n * chance[g] for g, n in groups.items()) / records
        return {
            ("attacked_records", None): sum(n for g, n in groups.items() if chance[g] > 0),
            ("p_reid_max", None): max(chance.values()),
            ("p_reid_mean", None): mean,
            ("expected_loss", None): mean * records,
            ("p_reid_baseline_mean", None): math.fsum(n * self.once(g) for g, n in groups.items()) / records,
            ("expected_payoff_max", None): max(0.0, *payoff.values()),
        }
