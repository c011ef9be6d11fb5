"""A fitted model on disk, without pickle; queries read only the parts they need.

docs/store-format.md describes the format; `__all__` lists the public names.
"""

from ._directory import MANIFEST, check_target, disk_errors, read_manifest  # noqa: F401
from ._fit import Draft, fingerprint_of, fit_draft, fit_into, result_record  # noqa: F401
from ._model import inspect, load, save, verify
from ._pack import StoreError
from ._rows import as_floats, begin_npy, mapped_used, parquet_to_npy, write_npy  # noqa: F401
from ._subdomains import folder_of  # noqa: F401

__all__ = ["StoreError", "fit_into", "inspect", "load", "parquet_to_npy", "save"]
__all__ += ["verify"]
