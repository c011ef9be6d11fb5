"""A fitted model on disk: no pickle, memory-mapped, read as far as queries need it.

A model is a tree of named tuples and arrays, which goes into files (`_codec`, `_pack`):
one per subdomain (`_subdomains`) and one for what they share, in a directory with a
manifest (`_directory`, `_model`). A fit may write there while it runs (`_draft`,
`_fit`). docs/store-format.md describes the format.

Users call what `__all__` names; the other names are for `overcover.distributed` and
the command line.
"""

from ._directory import MANIFEST, check_target, disk_errors, read_manifest  # noqa: F401
from ._draft import Draft, result_record  # noqa: F401
from ._fit import fingerprint_of, fit_draft, fit_into  # noqa: F401
from ._model import inspect, load, save, verify
from ._pack import StoreError
from ._rows import mapped_used, parquet_to_npy, write_npy  # noqa: F401
from ._subdomains import folder_of  # noqa: F401

__all__ = ["StoreError", "fit_into", "inspect", "load", "parquet_to_npy", "save"]
__all__ += ["verify"]
