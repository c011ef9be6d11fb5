"""The runner of a fit on a cluster: workers do its stages, and fit its machines."""

from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone

from ..regressor import OverlappingCoverRegressor
from ..store import Draft, StoreError, fit_draft
from ..tables import needs_encoding
from . import _worker as worker
from ._cluster import check_shared, names_of, running, shared_inputs, submit
from ._worker import wait_for

# Subdomains per task at most: a second or so of work.
BATCH = 16
# Tasks per thread, so that none waits long for the last.
ROUNDS = 8


def fit(
    model,
    X,
    y,
    path,
    client=None,
    *,
    sample_weight=None,
    X_target=None,
    groups=None,
    resume=True,
    dtype=None,
):
    """Fit a model on the workers of a Dask cluster, into a store that they share.

    Equal to `overcover.store.fit_into`, bit by bit, on equal computers. Tuning,
    partition, cover and router are one task each, whose worker holds X as float64 a few
    times; with ``partition="two-level"`` the partition is many tasks, which hold a
    block or a shard of rows. So is the cover of many subdomains. Neither the client nor
    the scheduler hold rows, unless they are given as arrays in memory.

    Parameters
    ----------
    model : OverlappingCoverRegressor
        It is fitted; afterwards its subdomains are those of the store, as in `load`.
    X : array-like of shape (n_samples, n_features), path, Dask array or DataFrame
    y : array-like of shape (n_samples,) or (n_samples, n_outputs), path, Dask array, \
Series or DataFrame
        A path is that of a .npy file which all workers see; it is copied only if it is
        not float64 in C order. The workers write Dask collections to the store, block
        by block; blocks of unknown length are computed twice.
    path : str or path-like
        Of the store, on a file system that client and workers share.
    client : distributed.Client or None, default=None
        None is the current one.
    sample_weight, X_target, groups : array-like, path, Dask array or None, default=None
        As in ``model.fit``; the client holds the groups.
    resume, dtype : optional
        As in `overcover.store.fit_into`.

    Returns
    -------
    model

    Examples
    --------
    >>> import tempfile
    >>> from distributed import Client
    >>> from overcover import GP, OverlappingCoverRegressor, distributed
    >>> X = np.linspace(0, 6, 200)[:, None]
    >>> model = OverlappingCoverRegressor(GP(length_scale=1.0, noise=0.01),
    ...     subdomain_size=50, random_state=0)
    >>> with (
    ...     tempfile.TemporaryDirectory() as folder,
    ...     Client(processes=False, dashboard_address=":0") as client,
    ... ):
    ...     model = distributed.fit(model, X, np.sin(X[:, 0]), f"{folder}/sine.ocm")
    ...     bool(abs(distributed.predict(model, X[50:51])[0] - np.sin(X[50, 0])) < 0.01)
    True
    """
    if needs_encoding(X):
        raise ValueError(
            "On a cluster, X must hold numbers alone, and this table has columns of "
            f"{', '.join(sorted(set(map(str, X.dtypes))))}, or gaps. Encode it by "
            "TableEncoder, or fit it by overcover.store.fit_into."
        )
    client = running(client)
    futures: list[Any] = []

    def begin(scratch, dtype):
        check_shared(client, scratch)
        arrays = X, y, sample_weight, X_target, groups
        inputs = shared_inputs(client, scratch, *arrays)
        names = names_of(X)
        notes = {"columns": names} if names else None
        # Without the callbacks, which are the client's.
        fresh = OverlappingCoverRegressor(**clone(model).get_params(deep=False))
        request = fresh, inputs, str(scratch), dtype, notes
        fingerprint, inputs = submit(client, worker.prepare, *request).result()

        def fit_rows(folder):
            runner = OnCluster(folder, dtype, client, inputs, futures)
            *data, _, rows, numbers = inputs.mapped()
            try:
                model._fit(*data, None, runner, numbers)
            finally:
                runner.close()
            if sample_weight is not None and rows is not None:
                del model.weight_unit_  # those of merged rows are in other units
            if names:
                model.feature_names_in_ = np.array(names, dtype=object)

        return fingerprint, fit_rows

    def is_idle():  # else workers would miss the rows they have mapped
        return not futures

    store = Path(path).absolute()
    return fit_draft(model, store, begin, resume, dtype, is_idle=is_idle)


class OnCluster(Draft):
    """Runs the stages of a fit as tasks of workers, and reads what they wrote."""

    is_merged = True

    def __init__(self, folder, dtype, client, inputs, futures):
        super().__init__(folder, dtype)
        self.client, self.inputs, self.futures = client, inputs, futures

    def job(self, fit, **options):
        """What tasks need to know of a fit."""
        recipe = fit.recipe._replace(
            # Without what they may have learned elsewhere.
            machine=clone(fit.recipe.machine, safe=False),
            partition=clone(fit.recipe.partition, safe=False),
        )
        folder = str(self.folder)
        return worker.Job(folder, self.dtype, self.inputs, recipe, **options)

    def result_of(self, name, fit):
        with suppress(StoreError):  # not there yet, or damaged
            return self.read_result(name, fit)
        job = self.job(fit)
        for function, tasks in worker.steps_of(job, name, fit):
            self.do(function, job, tasks)
        wait_for(self.file(name))
        return self.read_result(name, fit)

    def do(self, function, job, tasks):
        """Wait for tasks that differ in their last arguments."""
        self.futures += [submit(self.client, function, job, *last) for last in tasks]
        self.client.gather(self.futures)
        # No longer held, so that a lost worker's results are not computed again.
        self.futures.clear()

    def states_of(self, fit, track):
        from distributed import as_completed

        n_threads = max(1, sum(self.client.nthreads().values()))
        step = int(np.clip(fit.n_subdomains // (ROUNDS * n_threads), 1, BATCH))
        job, tasks = self.job(fit, keeps_factors=bool(fit.keeps_factors)), {}
        for start in range(0, fit.n_subdomains, step):
            ids = range(start, min(start + step, fit.n_subdomains))
            tasks[submit(self.client, worker.fit_subdomains, job, ids)] = ids
        self.futures += tasks
        digests = (
            pair
            for future in as_completed(tasks)
            for pair in zip(tasks[future], future.result())
        )
        return self.stored(fit, [digest for _, digest in sorted(track(digests))])

    def close(self):
        """Cancel what is not done, and have workers close their files."""
        self.futures[:] = [future for future in self.futures if not future.done()]
        if self.client.status == "running":
            self.client.cancel(self.futures)
            self.client.run(worker.forget, on_error="ignore")
