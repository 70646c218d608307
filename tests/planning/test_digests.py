"""Bytes that key noise and name runs: they are those of every earlier release, whatever the types look like inside.

Those of mechanisms with an admission changed once, with their noise (CHANGELOG, "Changed numbers": the delta split).

A digest of another value would make another draw of the same policy, key and table, and the ledger would take a retry
for another release.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from policies import DP, DROP, RISK, Document, changed
from product import ROOT

from privrisk_spark.errors import InputError
from privrisk_spark.hierarchies.builders import build
from privrisk_spark.hierarchies.hierarchy import Hierarchy
from privrisk_spark.ledger.calibrated import Calibrated, calibrated, calibrated_of
from privrisk_spark.planning.as_published import as_published
from privrisk_spark.planning.calibration import mechanism
from privrisk_spark.planning.reuse import published_cells
from privrisk_spark.policy.policy import Policy
from privrisk_spark.policy.reading import load, parse

BASE = changed(
    DP,
    ("columns.zip.hierarchy", {"tree": {"*": {"north": ["1", "2"], "south": ["3", "4"]}}}),
    ("guarantee.crowd", None),
    ("guarantee.frequent", None),
)
PUBLIC = (
    ("guarantee.mode", "public-dictionary"),
    ("guarantee.epsilon.admit", 0),
    ("guarantee.frequent", 9),
    ("dictionary", {"kind": "table", "path": "p.csv", "public": True, "columns": {"age": "a", "zip": "z"}}),
)
PEELED = (
    ("guarantee.epsilon.choose", "0.050"),
    ("guarantee.schemes", DROP),
    ("guarantee.candidates", [[0, 1], [1, 0], [1, 1]]),
    ("guarantee.peel", 2),
)
GLOBAL = (
    ("guarantee.mode", "global"),
    ("guarantee.epsilon", {"choose": 0.1, "keep": 0.7}),
    ("guarantee.schemes", DROP),
    ("guarantee.objective", DROP),
    ("utility", {"weights": {"age": 0.25}}),
)
MODES: dict[str, Document] = {
    "gaussian": changed(BASE, ("guarantee.noise", "gaussian")),
    "laplace": changed(BASE, ("guarantee.noise", "laplace")),
    "proposed": changed(BASE, ("guarantee.schemes", DROP), ("guarantee.public_rows", 2_000)),
    "threshold": changed(
        BASE, ("guarantee.objective", {"kind": "threshold", "utility_at_least": 2}), ("risk.sensitivity.form", "record")
    ),
    "person": changed(BASE, ("table.entity_id", "who"), ("columns.who", {"role": "identifier"})),
    "weighed": changed(
        BASE,
        ("risk.sensitivity", {"form": "interaction", "interactions": [{"columns": ["age", "zip"], "weight": 0.5}],
                              "weights": {"age": 1e-9, "zip": float("inf")}}),
    ),
    "public-dictionary": changed(BASE, *PUBLIC),
    "peel": changed(BASE, *PEELED),
    "global": changed(BASE, *GLOBAL),
}  # fmt: skip

AS_PUBLISHED: Document = {
    **changed(BASE, ("ledger", DROP)),
    "guarantee": {
        "kind": "as-published",
        "algorithm": 6,
        "accept_unproven": True,
        "epsilon": 1,
        "beta": 0.5,
        "theta0": 0.1,
        "phi_l": 0.5,
    },
}
AS_PUBLISHED["risk"] = {"sensitivity": {"form": "constant", "constant": 2}}
PUBLISHED: dict[str, Document] = {
    "aggregate": AS_PUBLISHED,
    "threshold": changed(
        AS_PUBLISHED, ("guarantee.phi_l", DROP), ("guarantee.phi_u", 2), ("guarantee.utility_at_least", 1)
    ),
    "walk": changed(
        AS_PUBLISHED,
        ("guarantee.algorithm", 7),
        ("guarantee.phi_u", 2),
        ("guarantee.steps", 40),
        ("guarantee.layer_width", 0.9),
        ("guarantee.sigma", 0.6),
    ),
}


def built(policy: Policy) -> dict[str, Hierarchy]:
    return {
        name: build(spec.hierarchy, name, values=None, null_leaf=spec.nulls == "own-value")
        for name, spec in policy.quasi_identifiers.items()
    }


def of_text(document: Any) -> str:
    """SHA-256 of what is stored, hex: its order counts too."""
    return hashlib.sha256(json.dumps(document).encode()).hexdigest()


def reusing(root: Path) -> Document:
    """A release by the cells of another one, whose manifest is at a place of this machine."""
    policy = parse(MODES["gaussian"])
    hierarchies = built(policy)
    plan = mechanism(policy, hierarchies)
    cells = root / "admitted.parquet"
    cells.write_bytes(b"cells")
    manifest = {
        "run_id": "first",
        "guarantee": {"parameters": plan.parameters},
        "admitted": published_cells(cells, policy, hierarchies, plan.schemes),
    }
    (root / "manifest.json").write_text(json.dumps(manifest))
    return changed(
        BASE,
        ("guarantee.epsilon.admit", 0),
        ("guarantee.schemes", DROP),
        ("guarantee.reuse", str(root / "manifest.json")),
    )


GOLDEN: dict[str, list[str]] = {
    "gaussian": ["201b35486b8f15bd", "4591fbf20d4d1bc0", "10ff478ac08681a4"],
    "laplace": ["f3528e15245a7fc6", "a9e268a0b3b7bcd8", "6d31240d119a3330"],
    "proposed": ["a72048025b8b4d78", "f76cf9b91f2ac879", "3caf96b9cd72c44f"],
    "threshold": ["e11b17fe7a4421a7", "423ed80409798ea3", "2f813bd5ce932543"],
    "person": ["39155b7e2732530d", "5bf84814cacc98a7", "67786c83a082f622"],
    "weighed": ["06fa705729a86fbd", "a9e268a0b3b7bcd8", "6ac1a59a04149bee"],
    "public-dictionary": ["e3e6c0e74e172a86", "a228d99d6ea2681a", "8f6b0ac8539a619d"],
    "peel": ["ba72cd86f40613a0", "1da1da5d047186bf", "bf45af3f5167e424"],
    "global": ["5cfdc7b3427ab466", "6b4ddf3cb87e8b38", "4c1548053954d228"],
    "reuse": ["345a6d975fa91621", "44e02a3aef6ff563", ""],
    "as-published aggregate": ["165a7a81bbfb234d", "a512eeb261619f2e", "abd32d29a1efe369"],
    "as-published threshold": ["f4f19f7fce7d907a", "379442c1d92765e5", "9599662c269cd97f"],
    "as-published walk": ["93e54e8fc63d2cbd", "a10bb813e35ed717", "4288cff9598a1d2c"],
    "form left out": ["4f687035946fc4e3"],
    "form constant": ["1485d79b4fac68ae"],
    "form linear": ["e1f872327a1ccb54"],
    "form record": ["f5e9c3517bfbcaf2"],
    "form multiplicative": ["bbfa9cdd08b204ae"],
    "form interaction": ["b50acbca8ca04e41"],
    "adult-dp.yaml": [
        "468b973e5be10040cc32b4f62ddcb6ae669f968d4014b02b7c61a81ec5a3cf2a",
        "c82a7ff8667a8812974fce7c829a79fdcf509d7ae12533fcd3d534ec1805f78b",
        "2500fd463e321d4f57c7aa703f3b723017506a9a8e57c97e22af3d56491406c7",
    ],
    "adult.yaml": ["0fb466c30561cfc23dc6ac715f7deee918be6101a2306ac03e7c41cc696457a5"],
    "demo.yaml": ["1253cd7a8bd7bd0249594ebe018e1b915c303164ebfac8fe92b5fe9b91f0c492"],
}


@pytest.mark.parametrize("mode", [*MODES, "reuse"])
def test_the_digest_that_keys_the_noise_is_that_of_every_release(mode: str, tmp_path: Path) -> None:
    policy = parse(reusing(tmp_path) if mode == "reuse" else MODES[mode])
    hierarchies = built(policy)
    plan = mechanism(policy, hierarchies)
    named = "" if mode == "reuse" else policy.digest()[:16]
    found = [plan.digest(policy, hierarchies)[:16], of_text(plan.parameters)[:16], named]
    assert found == GOLDEN[mode], "mechanism, its published parameters in their order, policy"


@pytest.mark.parametrize("version", PUBLISHED)
def test_the_digest_of_what_is_as_published(version: str) -> None:
    policy = parse(PUBLISHED[version])
    hierarchies = built(policy)
    plan = as_published(policy, hierarchies)
    found = [plan.digest(policy, hierarchies)[:16], of_text(plan.to_dict())[:16], policy.digest()[:16]]
    assert found == GOLDEN[f"as-published {version}"]


FORMS: dict[str, dict[str, Any]] = {
    "left out": {},
    "constant": {"form": "constant", "constant": 3},
    "linear": {"weights": {"zip": 2}, "node_weights": {"sex": {"f": 0.25}}},
    "record": {"form": "record", "record": "w"},
    "multiplicative": RISK["risk"]["sensitivity"],
    "interaction": {
        "form": "interaction",
        "interactions": [{"columns": ["zip", "age"], "weight": 2}],
        "personal": {"factor": "w"},
    },
}


@pytest.mark.parametrize("form", FORMS)
def test_the_digest_of_a_policy_of_each_form(form: str) -> None:
    model = Policy.model_validate(changed(RISK, ("risk.sensitivity", FORMS[form])))
    assert model.digest()[:16] == GOLDEN[f"form {form}"][0]


@pytest.mark.parametrize("name", ["adult-dp.yaml", "adult.yaml", "demo.yaml"])
def test_the_digests_of_the_policies_of_this_project(name: str) -> None:
    assert load([ROOT / "conf" / name], environment={}).digest() == GOLDEN[name][0]


@pytest.mark.adult
def test_the_digest_that_keys_the_noise_of_adult(adult: Path) -> None:
    file = ROOT / "conf" / "adult-dp.yaml"
    hierarchies = built(load([file], environment={"ADULT": str(adult)}))
    policy = load([file], environment={})
    plan = mechanism(policy, hierarchies)
    assert plan.digest(policy, hierarchies) == GOLDEN["adult-dp.yaml"][1]
    assert of_text(plan.parameters) == GOLDEN["adult-dp.yaml"][2]


# ------------------------------------------------------------------------------------------- records, there and back


def planned(mode: str, root: Path) -> Calibrated:
    policy = parse(reusing(root) if mode == "reuse" else MODES[mode])
    return mechanism(policy, built(policy))


@pytest.mark.parametrize("mode", [*MODES, "reuse"])
def test_a_mechanism_reads_back_as_it_was(mode: str, tmp_path: Path) -> None:
    plan = planned(mode, tmp_path)
    stored = json.loads(json.dumps(plan.parameters))
    again = calibrated(stored)
    assert again.parameters == plan.parameters
    assert (again.events, again.statement, again.survival) == (plan.events, plan.statement, plan.survival)
    assert json.dumps(again.parameters) == json.dumps(plan.parameters), "the same bytes, too"
    assert calibrated({**stored, "accounting": {}, "noise_reason": "…"}).parameters == stored, "a manifest has more"
    assert calibrated_of(json.dumps({"parameters": stored, "digest": "ab", "version": "1.0"})) == again


@pytest.mark.parametrize("mode", [*MODES, "reuse"])
def test_every_wrong_key_of_a_mechanism_is_named(mode: str, tmp_path: Path) -> None:
    stored = planned(mode, tmp_path).parameters
    # Without one of these it is another mechanism, which lacks other keys.
    for key in set(stored) - {"picks" if mode == "peel" else "", "reuse"}:
        with pytest.raises(InputError, match=f"lack '{key}'"):
            calibrated({name: value for name, value in stored.items() if name != key})
        if key != "unit":
            with pytest.raises(InputError, match=f"'{key}'"):
                calibrated({**stored, key: object()})
