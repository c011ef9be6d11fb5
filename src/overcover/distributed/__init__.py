"""The same fit and the same predictions on many computers, by Dask.

Only this package imports dask. The computers share a file system, where the model grows
as a draft of `overcover.store`. A task has paths and numbers, but no arrays, and may be
repeated. So if a worker is lost, only its unfinished tasks are repeated, and an
interrupted fit can be resumed. The result equals that of `overcover.store.fit_into`,
bit by bit.
"""

from ._fit import fit
from ._predict import predict

__all__ = ["fit", "predict"]
