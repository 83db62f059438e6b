"""Public data sets by name: found in `$FILTAX_DATA`, then in the user's cache, then fetched where they are public.

`registry.toml` lists them. Every file is checked before it is read, by its sha256 or by the numbers in it. Most sets
have no address from which these very files can be had: `how` says how they were made, and a file made again from its
origin will do if its numbers are the same.
"""

from filtax.datasets._files import (
    DATASETS,
    DamagedDatasetError,
    Dataset,
    File,
    Images,
    data_homes,
    find_dataset,
    missing_files,
    read_images,
    read_table,
    whereabouts,
)

__all__ = [
    "DATASETS",
    "DamagedDatasetError",
    "Dataset",
    "File",
    "Images",
    "data_homes",
    "find_dataset",
    "missing_files",
    "read_images",
    "read_table",
    "whereabouts",
]
