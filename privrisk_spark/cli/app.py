"""Command line: ``init``, ``validate``, ``release``, ``mask``, ``assess``, ``attack``, ``share`` and so on."""

from __future__ import annotations

import atexit
import gc
from collections import UserDict
from importlib import import_module
from typing import Annotated, Any

import typer
import typer.main
from typer.core import TyperGroup

from privrisk_spark.cli.printing import echo
from privrisk_spark.registry import EXTENSIONS
from privrisk_spark.version import __version__

_ELSEWHERE = {
    "approve": "cli.fit",
    "synthesize": "cli.synthetic",
    "mask": "extensions.perturb.cli",
    **{one.job: f"extensions.{one.package}.cli" for one in EXTENSIONS},
}
COMMANDS = {
    name: f"privrisk_spark.{_ELSEWHERE.get(name, f'cli.{name}')}"
    for name in (
        "init", "validate", "release", "mask", "withdraw", "assess", "attack", "share", "fit", "approve", "curves",
        "audit", "synthesize", "guide", "config", "hierarchy", "ledger",
    )
}  # fmt: skip
"""Module of each command. It has a function with the name of the command, or a group with the ending ``_app``."""


class Commands(UserDict[str, Any]):
    """Commands, whose modules are imported when the commands are read."""

    def __getitem__(self, name: str) -> Any:
        """Return a command."""
        module = import_module(self.data[name])
        one = typer.Typer()
        if hasattr(module, f"{name}_app"):
            one.add_typer(getattr(module, f"{name}_app"), name=name)
        else:
            one.command(name)(getattr(module, name))
        return typer.main.get_group(one).commands[name]


class OnDemand(TyperGroup):
    """A group that imports the module of the command that runs, and no other."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands = Commands(COMMANDS)

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002
        """Return the names of the commands."""
        return list(self.commands)


app = typer.Typer(
    cls=OnDemand,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Measure the privacy risk of tables and publish anonymized releases.",
)


def _version(asked: bool) -> None:
    if asked:
        echo(f"privrisk_spark {__version__}")
        raise typer.Exit


@app.callback()
def _top(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and stop.")
    ] = False,
) -> None:
    del version


def main() -> None:
    """Entry point of ``privrisk``."""
    # A run makes many objects that stay. Looking through them for garbage, also at the end of the process, takes a
    # sixth of the time of a small release.
    gc.set_threshold(20_000)
    atexit.register(gc.freeze)
    app(prog_name="privrisk")


if __name__ == "__main__":
    main()
