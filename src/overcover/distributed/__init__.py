"""The same fit and the same predictions on many computers, by Dask.

    X, Y -> metric -> partition -> cover -> [machines] -> [routing -> combination]
    -> prediction

The only package that imports dask. The computers share a file system, where the model
grows as a draft of `overcover.store`. A task carries paths and the numbers of some
subdomains, never an array: its worker maps the rows, fits, writes each state in one
step and returns its checksum. So it does not matter how often a task is done: a worker
that is lost costs what it was working on, a fit that is interrupted goes on where it
stopped, and the result is that of `overcover.store.fit_into`, bit by bit.

What a worker does is in `overcover.store._shared`, which knows nothing of Dask.
"""

from ._fit import fit
from ._predict import predict

__all__ = ["fit", "predict"]
