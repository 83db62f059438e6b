"""`filtax data`: the public data sets, where they are, and their terms."""

from typing import Annotated

import typer

from filtax.commands.talk import print_table

__all__ = ["data"]


def data(
    what: Annotated[str, typer.Argument(metavar="[list]", help="What to do; there is nothing else.")] = "list",
) -> None:
    """List the public data sets that experiments and examples read: what they are, their licence, where they are.

    A set is looked for in $FILTAX_DATA, then in the user's cache; one marked public is fetched when it is first read.
    """
    if what != "list":
        raise typer.BadParameter(f"{what!r} was given, expected `list` or nothing.", param_hint="'WHAT'")
    from filtax.streams.datasets import DATASETS, whereabouts

    rows = [(name, one.about, one.licence, one.origin, whereabouts(name)) for name, one in DATASETS.items()]
    print_table([("name", "what", "licence", "from", "where"), *rows])
