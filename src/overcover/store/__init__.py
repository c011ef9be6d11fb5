"""A fitted model on disk: no pickle, memory-mapped, read as far as queries need it.

    X, Y -> metric -> partition -> cover -> machines -> routing -> combination
    -> prediction

Beside the path: what it makes is a tree of named tuples and arrays, which goes into
files (`_codec`, `_pack`), one per subdomain (`_subdomains`) and one for what they
share, in a directory with a manifest (`_directory`, `_model`), when a fit is done or
while it is (`_draft`). docs/store-format.md describes the format.
"""

from ._draft import fit_into
from ._model import inspect, load, save, verify
from ._pack import StoreError
from ._parquet import parquet_to_npy

__all__ = ["StoreError", "fit_into", "inspect", "load", "parquet_to_npy", "save"]
__all__ += ["verify"]
