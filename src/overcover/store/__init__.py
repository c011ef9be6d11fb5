"""A fitted model on disk: no pickle, memory-mapped, read as far as queries need it.

A model is a tree of named tuples and arrays, which goes into files (`_codec`, `_pack`):
one per subdomain (`_subdomains`) and one for what they share, in a directory with a
manifest (`_directory`, `_model`). A fit may write there while it runs (`_draft`,
`_fit`). docs/store-format.md describes the format.

Users call what `__all__` names; the other names are for `overcover.distributed` and
the command line.
"""

from ._directory import MANIFEST as MANIFEST
from ._directory import check_target as check_target
from ._directory import disk_errors as disk_errors
from ._directory import read_manifest as read_manifest
from ._draft import Draft as Draft
from ._draft import result_record as result_record
from ._fit import fingerprint_of as fingerprint_of
from ._fit import fit_draft as fit_draft
from ._fit import fit_into
from ._model import inspect, load, save, verify
from ._pack import StoreError
from ._rows import mapped_used as mapped_used
from ._rows import parquet_to_npy
from ._rows import write_npy as write_npy
from ._subdomains import folder_of as folder_of

__all__ = ["StoreError", "fit_into", "inspect", "load", "parquet_to_npy", "save"]
__all__ += ["verify"]
