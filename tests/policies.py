"""Policies that use every option, and ways to spoil them."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import yaml

from privrisk_spark.errors import ConfigError
from privrisk_spark.policy.reading import parse

Document = dict[str, Any]
Keys = tuple[str | int, ...]

DROP = object()

RISK: Document = yaml.safe_load("""
version: 1
run: {name: census, date: 2026-11-01}
table: {path: in/t.csv, format: csv, options: {sep: ";", header: true}, record_id: ssn}
columns:
  age: {role: quasi-identifier, hierarchy: {intervals: {widths: [5, 10], domain: [0, 99]}}, nulls: own-value}
  zip: {role: quasi-identifier, hierarchy: {mask: {from: right, steps: 5, length: 5}}, unknown: suppress}
  City: {role: quasi-identifier, hierarchy: {file: c.csv, separator: ";"}}
  born: {role: quasi-identifier, hierarchy: {dates: {steps: [day, year], domain: ["2000-01-01", "2001-12-31"]}}}
  job: {role: quasi-identifier, hierarchy: {tree: {"*": {office: [clerk, typist], field: [farmer]}}}}
  rank: {role: quasi-identifier, hierarchy: {order: {values: [low, mid, high], fanouts: [2]}}}
  pay: {role: quasi-identifier, hierarchy: {intervals: {cuts: [[0, 10, 20], [10]]}}}
  sex: {role: quasi-identifier, hierarchy: {flat: {values: [f, m]}}}
  sick: {role: sensitive, action: keep}
  note: {role: insensitive, action: drop}
  ssn: {role: identifier, action: drop}
  w: {role: weight}
dictionary:
  kind: table
  path: known/register
  format: orc
  options: {a: 1}
  consistency: subsumes
  columns: {age: AGE, born: {column: years, level: 1, age_in: 2006}, City: {column: town, level: 0, mapping: m.csv}}
  public: false
risk:
  model: III
  sensitivity:
    form: multiplicative
    weights: {age: 0.5, zip: 4.5}
    node_weights: {sex: {f: 0.25}}
    personal: {columns: {age: w}, factor: w, sum_to: 2}
utility: {measure: leaves, weights: {age: 2, zip: 1}}
decision: {problem: min-risk, utility_at_least: 3, method: aruba, neighbourhood: cube, infeasible: suppress}
guarantee: {kind: risk}
counting: {plan: dense, dense_cells: 1000, sorted_vectors: 1000}
checks: {row_count: {at_least: 2, at_most: 9}, min_class_size: 2, max_mean_risk: 0.5, max_risk: 0.9,
         forbid_verbatim: true, fail_on: warning}
output: {path: out/t, vault: vault/t, format: csv, files: 3}
""")

DP: Document = yaml.safe_load("""
version: 1
run: {name: census}
table: {path: in/t.csv}
columns:
  age: {role: quasi-identifier, hierarchy: {intervals: {widths: [5, 10], domain: [0, 99]}}}
  zip: {role: quasi-identifier, hierarchy: {mask: {steps: 5}}}
guarantee:
  kind: dp
  mode: local
  epsilon: {admit: 0.3, keep: 0.7}
  delta: 1e-9
  public_rows: 30000
  schemes: [[0, 1], [1, 0]]
  objective: {lambda: 0.5, kappa: 2, tau: 4, phi_min: 0.1, count_cap: 500}
  keep_fraction: 0.25
  crowd: 40
  frequent: 50
  key: env:RELEASE_KEY
output: {path: out/t, vault: vault/t}
ledger: {url: "sqlite:///v.db", lineage: census, cap: {epsilon: 4, delta: 1e-7}}
""")


def changed(base: Document, *changes: tuple[str, Any]) -> Document:
    """Copy with dotted keys set; the value DROP removes the key."""
    document = copy.deepcopy(base)
    for path, value in changes:
        *above, last = path.split(".")
        here = document
        for key in above:
            here = here.setdefault(key, {})
        if value is DROP:
            del here[last]
        else:
            here[last] = value
    return document


def faults(document: Document) -> dict[str, str]:
    with pytest.raises(ConfigError) as caught:
        parse(document)
    paths = [fault.path for fault in caught.value.faults]
    assert len(paths) == len(set(paths)), "one fault per key"
    return {fault.path: fault.rule for fault in caught.value.faults}


SECRET = "hunter2-deadbeef"
