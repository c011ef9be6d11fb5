"""Predictions of a stored model, by workers that open it themselves."""

import os
import tempfile
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from .._streams import blocks_of
from .._validation import check_queries
from ..consult import panel_of
from ..store import StoreError, disk_errors, folder_of, load, write_npy
from ._cluster import check_numbers, check_shared, is_dask, names_of, running, submit
from ._worker import begin_rows, map_rows, write_rows


def predict(model, X, client=None, return_std=False, *, noise=True):
    """Predict with a stored model on the workers of a Dask cluster.

    Memory of a worker: the rows of one task or block, and open subdomains, see
    `overcover.load`.

    Parameters
    ----------
    model : str, path-like, or OverlappingCoverRegressor
        The path of a store that all workers see, or the model that `overcover.load`,
        `fit` or `overcover.store.fit_into` made of it; ``n_consulted`` and ``combine``
        may have been changed since.
    X : array-like of shape (n_queries, n_features), path, Dask array or DataFrame
        A path is that of a .npy file which all workers see.
    client : distributed.Client or None, default=None
        None is the current one. Dask collections need none.
    return_std : bool, default=False
        Also return standard deviations.
    noise : bool, default=True
        Whether these are of a new observation, or of the function, as in
        ``model.predict``.

    Returns
    -------
    mean : of shape (n_queries,) or (n_queries, n_outputs)
        For arrays and paths an ndarray, equal to ``model.predict(X)`` bit by bit. For
        a Dask array a lazy Dask array; for a Dask DataFrame a Series "mean", or a
        DataFrame with columns "mean_0", "mean_1" and so on, with its index. These are
        predicted block by block, equal but for rounding.
    std : of mean's shape
        Only if `return_std`.

    Examples
    --------
    >>> import dask.array as da
    >>> import tempfile
    >>> from overcover import GP, OverlappingCoverRegressor, distributed
    >>> X = np.linspace(0, 6, 200)[:, None]
    >>> model = OverlappingCoverRegressor(GP(length_scale=1.0, noise=0.01),
    ...     subdomain_size=50, random_state=0).fit(X, np.sin(X[:, 0]))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     model.save(f"{folder}/sine.ocm")
    ...     lazy = distributed.predict(f"{folder}/sine.ocm", da.from_array(X, 100))
    ...     bool(np.allclose(lazy.compute(), model.predict(X)))
    True
    """
    if isinstance(model, str | os.PathLike):
        model = load(model)
    folder = folder_of(model)
    options = int(model.n_consulted), str(model.combine)
    # The store, its folder of data (another one if it is overwritten), and options.
    source = str(folder.parent), folder.name, *options
    wanted = {"return_std": return_std, "noise": noise}
    # (), or (n_outputs,): the shape of the mean of one row.
    shape = (model.n_outputs_,) if model._y_ndim == 2 else ()
    if not is_dask(X):
        return _predict_rows(running(client), model, source, X, shape, wanted)
    _check_columns(model, X)
    if not hasattr(model, "encoder_"):
        check_numbers(X)
    predict_lazily = _lazy_frame if hasattr(X, "map_partitions") else _lazy_array
    return predict_lazily(source, X, shape, wanted)


def _predict_rows(client, model, source, X, shape, wanted):
    """By tasks of as many rows as ``model.predict`` takes at a time: equal to it."""
    store, step = Path(source[0]), panel_of(model).rows_per_round
    return_std = wanted["return_std"]
    prefix = f".{store.name}-"
    with (
        disk_errors(store.parent),
        tempfile.TemporaryDirectory(dir=store.parent, prefix=prefix) as folder,
    ):
        check_shared(client, folder)
        if isinstance(X, str | os.PathLike):
            queries = str(Path(X).absolute())
            n_queries = len(_check_columns(model, map_rows(queries)))
        else:
            queries = f"{folder}/queries.npy"
            X = check_queries(model, X)
            n_queries = len(X)
            write_npy(queries, X.shape, X.dtype, blocks_of(X))
        files = [f"{folder}/{name}.npy" for name in ("mean", "std")[: 1 + return_std]]
        for file in files:
            begin_rows(file, (n_queries, *shape))
        tasks = [
            submit(client, answer_range, source, queries, start, step, wanted, files)
            for start in range(0, n_queries, step)
        ]
        client.gather(tasks)
        answers = tuple(map(np.load, files))
    return answers if return_std else answers[0]


def _lazy_array(source, X, shape, wanted):
    X, return_std = X.rechunk({1: -1}), wanted["return_std"]
    shape = (*shape, 2) if return_std else shape
    lazy = X.map_blocks(
        answer,
        source=source,
        wanted=wanted,
        drop_axis=1,
        new_axis=list(range(1, 1 + len(shape))),
        chunks=(X.chunks[0], *((n,) for n in shape)),
        dtype=np.float64,
        meta=np.empty((0,) * (1 + len(shape))),
    )
    return (lazy[..., 0], lazy[..., 1]) if return_std else lazy


def _lazy_frame(source, X, shape, wanted):
    import pandas as pd

    return_std = wanted["return_std"]
    names: Any = ["mean", "std"] if return_std else ["mean"]
    if shape:
        names = [[f"{name}_{i}" for i in range(shape[0])] for name in names]
    columns, index = np.ravel(names).tolist(), X._meta.index
    like = pd.DataFrame(columns=columns, dtype=np.float64, index=index)
    options = {"source": source, "wanted": wanted, "like": like, "meta": like}
    lazy = X.map_partitions(answer_frame, **options, align_dataframes=False)
    return tuple(lazy[name] for name in names) if return_std else lazy[names[0]]


def _check_columns(model, X):
    """Refuse queries of another width, or with other names, before any is answered."""
    is_table = hasattr(X, "columns")  # else rows are encoded already
    n_features = model.n_features_in_ if is_table else len(model.length_scales_)
    shape = X.shape
    if len(shape) != 2 or shape[1] != n_features:
        raise ValueError(
            f"X has the shape {shape}, and the model was fitted to {n_features} "
            "columns. Give rows with the same columns."
        )
    expected, names = list(getattr(model, "feature_names_in_", [])), names_of(X)
    if expected and names and names != expected:
        raise ValueError(
            f"X has the columns {', '.join(names)}, and the model was fitted to "
            f"{', '.join(expected)}. Give the same columns in the same order."
        )
    return X


@lru_cache(maxsize=4)
def opened(source):
    """The model of a source, with the files of its last subdomains open."""
    path, data, n_consulted, combine = source
    model = load(path)
    if folder_of(model).name != data:
        text = f"{path} was overwritten meanwhile, and holds another model."
        raise StoreError(f"{text} Load it again.")
    # Tasks run beside each other already.
    return model.set_params(n_consulted=n_consulted, combine=combine, n_jobs=1)


def answer(X, source, wanted):
    """Mean of some rows; with `return_std` mean and std, along a last axis of two."""
    answers = opened(source).predict(X, **wanted)
    return np.stack(answers, axis=-1) if wanted["return_std"] else answers


def answer_frame(X, source, wanted, like):
    """Means, then stds, with the index of X and the columns of `like`."""
    if not len(X):
        return like
    answers = opened(source).predict(X, **wanted)
    values = np.column_stack(answers if wanted["return_std"] else [answers])
    return type(like)(values, index=X.index, columns=like.columns)


def answer_range(source, queries, start, step, wanted, files) -> None:
    """Predict rows of a .npy file: means into the first file, stds into the second."""
    answers = opened(source).predict(map_rows(queries)[start : start + step], **wanted)
    for file, values in zip(files, answers if wanted["return_std"] else [answers]):
        write_rows(values, file, start)
