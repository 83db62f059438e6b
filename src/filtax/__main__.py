"""The command `filtax`, which is also `python -m filtax`: the command line where its libraries are installed."""


def main() -> None:
    """Run the command line, or say how to install it."""
    try:
        from filtax.cli import main as run
    except ModuleNotFoundError as missing:
        if missing.name is None or missing.name.startswith("filtax"):
            raise
        raise SystemExit(
            f"filtax: the command line needs {missing.name}, which is not installed; run pip install 'filtax[cli]'."
        ) from None
    run()


if __name__ == "__main__":
    main()
