"""A fit whose stages one worker does, and whose machines all of them fit."""

import hashlib
import json
import time
from contextlib import suppress
from pathlib import Path

import numpy as np
import sklearn
from sklearn.base import clone

from ..regressor import OverlappingCoverRegressor
from ..store import StoreError
from ..store import _directory as directory
from ..store import _shards as shards
from ..store import _shared as shared
from ..store._codec import encode
from ..store._draft import Draft, check_draftable, fit_draft
from ..store._model import check_dtype
from ._cluster import call, check_shared, running, submit
from ._collections import names_of, shared_inputs

# Subdomains per task at most: a second or so of work.
BATCH = 16
# Tasks per thread, so that none waits long for the last.
ROUNDS = 8
# Seconds between looks at what a worker has finished, and for a file to be seen here.
PAUSE, PATIENCE = 0.05, 30.0


def fit(
    model,
    X,
    y,
    path,
    client=None,
    *,
    sample_weight=None,
    X_target=None,
    resume=True,
    dtype=None,
):
    """Fit a model on the workers of a Dask cluster, into a store that they share.

    Equal to `overcover.store.fit_into`, bit by bit, on equal computers. Tuning,
    partition and cover are one task, whose worker must hold X as float64 a few times;
    with ``partition="two-level"`` tuning alone is, and partition and cover are tasks
    that hold a block or a shard of rows. The machines are fitted wherever there is a
    worker, which holds the rows of the subdomains it works on. Neither the client nor
    the scheduler ever hold rows, unless they are given as arrays in memory.

    Parameters
    ----------
    model : OverlappingCoverRegressor
        Is fitted; afterwards its subdomains are those of the store, as in `load`.
    X : array-like of shape (n_samples, n_features), path, Dask array or DataFrame
    y : array-like of shape (n_samples,) or (n_samples, n_outputs), path, Dask array, \
Series or DataFrame
        A path is that of a .npy file which all workers see: it is mapped, and copied
        only if it is not float64 in C order. Dask collections are written to the
        store, block by block, by the workers that compute them; blocks of unknown
        length are computed twice. Arrays in memory are written there by the client.
    path : str or path-like
        Of the store, on a file system that client and workers share; as in
        ``model.save``.
    client : distributed.Client or None, default=None
        None is the current one.
    sample_weight, X_target : array-like, path, Dask array or None, default=None
        As in ``model.fit``.
    resume, dtype : optional
        As in `overcover.store.fit_into`.

    Returns
    -------
    model

    Raises
    ------
    StoreError
        If the path is foreign, holds another unfinished fit, or a worker cannot see it.

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
    client = running(client)
    check_draftable(model)
    model._check_options()
    dtype = check_dtype(dtype)
    # Without the callbacks and the bars, which are the client's.
    params = clone(model).set_params(verbose=0).get_params(deep=False)
    fresh = OverlappingCoverRegressor(**params)
    encode(fresh)  # refuses what cannot be stored before anything is copied
    with directory.writing(Path(path).absolute()) as store:
        # Not named by the manifest, so the next writer deletes what a crash leaves.
        folder, work = directory.new_data_folder(store), None
        try:
            check_shared(client, folder)
            inputs = shared_inputs(client, folder, X, y, sample_weight, X_target)
            names = names_of(X)
            fingerprint = call(client, shared.fingerprint, fresh, inputs, dtype)
            if names:
                given = json.dumps([fingerprint, names])
                fingerprint = hashlib.sha256(given.encode()).hexdigest()
            used = call(client, shared.used_inputs, inputs, str(folder))

            def fit_rows(draft):
                nonlocal work
                rows, outputs = (shared.map_rows(name) for name in used[:2])
                work = _Spread(draft, dtype, client, fresh, used)
                work.is_merged = True
                # The worker that tunes has looked at every value.
                with work, sklearn.config_context(assume_finite=True):
                    model._fit(rows, outputs, None, None, work)
                if names:
                    model.feature_names_in_ = np.array(names, dtype=object)
                return work.digests

            keep = [folder.name]
            return fit_draft(
                model, store, fit_rows, fingerprint, resume, dtype, keep=keep
            )
        finally:
            # Workers that are still at it would miss the rows they have mapped.
            if folder.exists() and not (work and work.unfinished):
                directory.keep_only(folder)


class _Spread(Draft):
    """A draft that workers write, and the client reads.

    A context manager, which cancels what is not done when it is left.
    """

    def __init__(self, folder, dtype, client, model, inputs):
        super().__init__(folder, dtype)
        self.client, self.inputs = client, inputs
        self.given = model, inputs, str(folder), dtype
        self.outline, self.futures, self.unfinished = None, [], []
        X, y = shared.map_rows(inputs.X), shared.map_rows(inputs.y)
        self.sharding = shards.sharding_of(model, X, y, inputs.X, folder)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.unfinished = [future for future in self.futures if not future.done()]
        if self.client.status == "running":
            self.client.cancel(self.unfinished)
            self.client.run(shared.forget, on_error="ignore")

    def stage(self, name, rng, make, *args):
        """What workers have written, as soon as they have."""
        if self.sharding is None and self.outline is None:
            self.outline = submit(self.client, shared.outline, *self.given)
            self.futures.append(self.outline)
        elif self.sharding is not None:
            with suppress(_NotYet):  # of an interrupted fit
                return super().stage(name, rng, _not_yet, *args)
            self._do_stage(self.sharding, name, *args)
        seen_done = None
        while True:
            # Before looking, so that what is done has been written.
            if self.outline is None or self.outline.done():
                seen_done = seen_done or time.monotonic()
            if self.outline is not None and self.outline.done():
                self.outline.result()
            try:
                return super().stage(name, rng, _not_yet, *args)
            except _NotYet:
                late = seen_done and time.monotonic() - seen_done > PATIENCE
            if late:
                raise StoreError(
                    f"{self.folder / name} was written by a worker and is not seen "
                    "here. Choose a path on a file system that all of them share."
                )
            time.sleep(PAUSE)

    def _do_stage(self, job, name, *args):
        """Do a stage of a sharded fit, one step after the other."""
        blocks = [(b,) for b in shards.block_numbers(job)]
        each_shard = [(s,) for s in range(job.n_shards)]
        if name == "metric":
            self._do_step(shared.tune, *self.given)
        elif name == "partition":
            self._do_step(shards.split, job)
            self._do_step(shards.assign, job, over=blocks)
            self._do_step(shards.share, job)
            self._do_step(shards.list_movers, job, over=blocks)
            self._do_step(shards.move, job)
            self._do_step(shards.cluster_shard, job, over=each_shard)
            self._do_step(shards.join_shards, job)
        elif name == "cover":
            self._do_step(shards.lend, job, over=shards.cluster_ranges(job))
            self._do_step(shards.join_loans, job)
        else:
            self._do_step(shards.summarize, job, args[0])

    def _do_step(self, function, *args, over=((),)):
        """Wait for tasks that differ in their last arguments."""
        self.futures = [submit(self.client, function, *args, *last) for last in over]
        self.client.gather(self.futures)
        # Whose results nobody needs any more are not done again when a worker is lost.
        self.futures = []

    def states(self, local, n_jobs):
        """Numbers and digests of subdomains, as they are done."""
        from distributed import as_completed

        keep, n_subdomains = bool(local.keep), len(local.cover.members)
        job = shared.Job(str(self.folder), self.inputs, self.dtype, keep)
        n_threads = max(1, sum(self.client.nthreads().values()))
        step = int(np.clip(n_subdomains // (ROUNDS * n_threads), 1, BATCH))
        tasks = {}
        for start in range(0, n_subdomains, step):
            ids = range(start, min(start + step, n_subdomains))
            tasks[submit(self.client, shared.fit_subdomains, job, ids)] = ids
        self.futures += tasks
        for future in as_completed(tasks):
            yield from zip(tasks[future], future.result())

    def gathered(self, machine, states):
        """States that are read from their files, in order."""
        return super().gathered(machine, (digest for _, digest in sorted(states)))


class _NotYet(Exception):
    """A stage is not written yet."""


def _not_yet(*args):
    raise _NotYet
