"""The same fit and the same predictions on many computers, by Dask.

    X, Y -> tune -> partition -> cover -> router -> machines -> calibrate

The only package that imports dask. The computers share a file system, where the model
grows as a draft of `overcover.store`. A task carries paths, and the name of a stage or
numbers of subdomains, never an array: its worker maps the rows, does its part, and
writes each result in one step. A task may be repeated: a lost worker costs what it was
working on, a fit that is interrupted goes on where it stopped, and the result is that
of `overcover.store.fit_into`, bit by bit.

`_fit` runs the stages of `overcover.fitting` as tasks. What a worker does is in
`_worker` and `_shards`, which know nothing of Dask.
"""

from ._fit import fit
from ._predict import predict

__all__ = ["fit", "predict"]
