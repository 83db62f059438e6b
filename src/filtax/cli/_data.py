"""`filtax data`: the public data sets, where they are, and their terms."""

from typing import Annotated

import typer

from filtax.cli._talk import print_table


def data(
    what: Annotated[str, typer.Argument(metavar="[list]", help="What to do; there is nothing else.")] = "list",
) -> None:
    """List the public data sets that experiments and examples read: where they are, their licence, what they are.

    A set is looked for in $FILTAX_DATA, then in the user's cache, and checked; one marked public is fetched when it is
    first read. Below stand the files to bring of those marked absent, and what is wrong with those marked damaged.
    """
    if what != "list":
        raise typer.BadParameter(f"{what!r} was given, expected `list` or nothing.", param_hint="'WHAT'")
    from filtax.datasets import DATASETS, data_homes, whereabouts

    where = {name: whereabouts(name) for name in DATASETS}
    rows = [(name, where[name], one.licence, one.about, one.origin) for name, one in DATASETS.items()]
    print_table([("name", "where", "licence", "what", "from"), *rows])
    for name in (name for name, place in where.items() if place == "damaged"):
        print(f"\n{_damage(name)}")
    if "public" in where.values():
        print(f"\nWhat is public is fetched into {data_homes()[-1]} when it is first read.")
    if absent := [name for name, place in where.items() if place == "absent"]:
        files = {file: known.described for name in absent for file, known in DATASETS[name].files.items()}
        folders = " or ".join(str(home) for home in data_homes())
        hint = "" if data_homes()[1:] else ", or into a folder that FILTAX_DATA names"
        print(f"\nWhat is absent was made from what stands under `from`. Bring these files into {folders}{hint}.")
        print(
            "A table, or arrays, that you make yourself will do, if the numbers are the same in every bit of float64:"
        )
        print_table([("name", "file", "sha256"), *(row for name in absent for row in _missing(name))])
        print()
        print_table([("name", "how it was made"), *((name, DATASETS[name].how) for name in absent)])
        print()
        print_table([("file", "what it holds"), *((file, words) for file, words in files.items() if words)])


def _missing(name: str) -> list[tuple[str, str, str]]:
    from filtax.datasets import missing_files

    return [(name, file, digest) for file, digest in missing_files(name).items()]


def _damage(name: str) -> str:
    from filtax.datasets import DamagedDatasetError, find_dataset

    try:
        find_dataset(name)
    except DamagedDatasetError as damage:
        return f"{name}: {damage}"
    except FileNotFoundError as absence:  # a file before the damaged one
        return str(absence)
    return f"{name}: it is whole now."
