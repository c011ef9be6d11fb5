"""The same fit and the same predictions on many computers, by Dask.

The only package that imports dask. The computers share a file system, where the model
grows as a draft of `overcover.store`. A task carries paths and numbers, never an array,
and may be repeated: a lost worker costs what it was working on, a fit that is
interrupted goes on, and the result is that of `overcover.store.fit_into`, bit by bit.
"""

from ._fit import fit
from ._predict import predict

__all__ = ["fit", "predict"]
