"""`filtax methods`: the parts that a method's name is made of, and the published methods."""

from typing import Annotated

import typer

from filtax.cli._talk import print_table


def methods(
    name: Annotated[
        str | None, typer.Argument(help="A published method, or a name made of parts, to see them.")
    ] = None,
) -> None:
    """List the parts that a method's name is made of, and the published methods that are made of them.

    A name reads POSTERIOR+AUXILIARY[K]-PRIOR, such as "LG+C-ACI(q=0.01)" or "LG+RL[10]-PR(hazard=0.01)".
    """
    from filtax.report import catalogue, describe, published

    if name is not None:
        try:
            print(describe(name))
        except ValueError as error:
            raise typer.BadParameter(str(error), param_hint="'NAME'") from None
        return
    print_table(catalogue(), widest=48)
    print("\nPublished methods: filtax.methods.NAME(model, ...); filtax methods NAME tells more.")
    print("A.1 in parentheses is what is built unless posterior= is given.")
    print_table([("name", "task", "changes", "M.2", "M.3", "A.1", "A.2"), *published()])
