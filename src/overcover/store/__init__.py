"""A fitted model on disk: no pickle, memory-mapped, read as far as queries need it.

    X, Y -> metric -> partition -> cover -> machines -> routing -> combination
    -> prediction

Beside the path: what it makes is a tree of named tuples and arrays, which goes into
files (`_codec`, `_pack`), one per subdomain (`_subdomains`) and one for what they
share, in a directory with a manifest (`_directory`, `_model`), when a fit is done or
while it is (`_draft`, `_fit`). docs/store-format.md describes the format.

Users call what `__all__` names; the other names are for `overcover.distributed` and the
command line.
"""

from ._directory import (
    MANIFEST,
    check_target,
    disk_errors,
    keep_only,
    new_data_folder,
    read_manifest,
    writing,
)
from ._draft import Draft, new_draft
from ._fit import check_draftable, fingerprint_of, fit_draft, fit_into
from ._model import check_dtype, inspect, load, save, verify
from ._pack import StoreError
from ._parquet import parquet_to_npy
from ._rows import write_npy, write_used
from ._subdomains import StoredStates

__all__ = ["StoreError", "fit_into", "inspect", "load", "parquet_to_npy", "save"]
__all__ += ["verify"]
