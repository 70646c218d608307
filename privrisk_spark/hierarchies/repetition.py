"""YAML of a policy, or of a file it names, that stands for no more than a person writes."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import yaml

MOST_VALUES = 4_000_000
"""Values a YAML document may stand for, each as often as an alias repeats it."""


class RepetitionError(ValueError):
    """A YAML document is refused for what its aliases stand for."""


def refuse_repetition(top: yaml.Node | None) -> None:
    """Refuse a document whose aliases make it too large, or endless, before anything is made of it.

    Parameters
    ----------
    top : yaml.Node or None
        As it is composed: an alias is the very node it stands for.

    Raises
    ------
    RepetitionError
        Saying which.
    """
    sizes: dict[int, int] = {}
    open_nodes: set[int] = set()
    # Depth first with a stack of its own: a document may be nested deeper than Python's calls.
    todo = [] if top is None else [(top, False)]
    while todo:
        node, done = todo.pop()
        below = _below(node)
        if done:
            open_nodes.discard(id(node))
            sizes[id(node)] = 1 + sum(sizes[id(one)] for one in below)
            if sizes[id(node)] > MOST_VALUES:
                raise RepetitionError(f"its aliases (*name) make it stand for more than {MOST_VALUES:,} values")
        elif id(node) in open_nodes:
            raise RepetitionError("an alias (*name) stands for something it is itself a part of")
        elif id(node) not in sizes:
            open_nodes.add(id(node))
            todo.append((node, True))
            todo += [(one, False) for one in below if id(one) not in sizes]


def _below(node: yaml.Node) -> list[yaml.Node]:
    if isinstance(node.value, str):
        return []
    return [part for one in node.value for part in (one if isinstance(one, tuple) else (one,))]
