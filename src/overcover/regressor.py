"""`OverlappingCoverRegressor`: the whole path composed, nothing else.

X, Y -> metric -> partition -> cover -> machines -> routing -> combination
-> prediction
"""

from typing import NamedTuple

import numpy as np
from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from . import combination, routing
from ._markup import element
from ._notes import keep_notes
from ._progress import CallbackSupportMixin, FitProgress, with_callbacks
from ._streams import FARTHEST, Rows, without_far_cells
from ._validation import (
    all_or_nothing,
    check_choice,
    check_count,
    check_training_data,
    warn_of_few_rows,
)
from .cover import (
    DEFAULT_OVERLAP,
    DEFAULT_SIZE,
    DEFAULT_SPREAD,
    CoverShape,
    check_cover_options,
    cover_partition,
)
from .explain import explain, summary
from .machines import Answer, Prediction, TakesMachine, make_machine
from .machines.base import Predictor
from .partition import partition_rows
from .planning.findings import warn_of_poor_choices
from .planning.result import describe_fit
from .subdomains import InMemory, ask, ask_doubts, fit_machines

# Queries are answered in rounds, so that memory is flat however many there are. What
# the answers to a round may occupy; and where factors need not be made again, how many
# queries there are for each subdomain, because more of them would gain little.
ROUND_BYTES, ROUND_QUERIES = 2**27, 512


class Consultation(NamedTuple):
    """Who was asked about some queries, what they said, and what it counts."""

    route: routing.Route

    answers: Answer
    """With an axis for the consulted, see `ask`."""

    weights: np.ndarray
    """Shares, shape (n_queries, n_consulted, 1 or n_outputs)."""


class OverlappingCoverRegressor(
    TakesMachine,
    Predictor,
    CallbackSupportMixin,
    MultiOutputMixin,
    RegressorMixin,
    BaseEstimator,
):
    """Kernel regression on an overlapping domain cover.

    The rows are partitioned into equal-size clusters; every cluster borrows rows from
    its neighbours and becomes a subdomain of `subdomain_size` rows, on which one local
    machine is precomputed. A query is answered by the subdomain(s) it is routed to.
    Training costs O(N M^2 / (1 - p)), a query O(M^2) whatever N, or O(M) for the mean
    alone where the router does not ask for variances.

    Parameters
    ----------
    machine : Machine, {"gp", "tgp", "iwtgp", "smtgp"} or None, default=None
        What is fitted on every subdomain; None is ``GP()``. Any scikit-learn regressor
        will do too (it becomes an `AnyRegressor`).
    subdomain_size : int or "auto", default=800
        The paper's M: rows that one machine sees. More is more accurate and slower.
        "auto" chooses by the number of rows, and keeps factors within 4 GiB; see
        `overcover.planning.auto_size` for the rule, `overcover.plan` for costs.
    overlap : float in [0, 1), default=0.9
        The paper's p: share of a subdomain's rows that other clusters own. 0 is a
        partition into independent machines.
    spread : float >= 1, default=3.0
        The paper's t: how many times the least number of neighbouring clusters lend.
    n_consulted : int, default=1
        The paper's K': subdomains that answer a query together; at most as many as
        there are.
    partition : {"kmeans", "ab", "imda", "rpc", "two-level"} or clusterer, \
default="kmeans"
        See `overcover.partition.partition_rows`.
    router : {"variance", "mahalanobis", "euclidean", "neighbors", "density"}, \
default="variance"
        See `overcover.routing`. A machine without a variance is routed by Euclidean
        distance where this says "variance".
    combine : {"inverse-distance", "precision", "nearest"}, default="inverse-distance"
        How several answers become one; see `overcover.combination`.
    n_jobs : int or None, default=None
        Threads that work on different subdomains, each with one BLAS thread. Results
        do not depend on it.
    random_state : int, RandomState or None, default=None
        Decides the rows that tuning looks at and the seeds of the partition.
    verbose : int, default=0
        1 shows progress bars.

    Attributes
    ----------
    cover_ : Cover
        The rows of every subdomain, by their numbers in X; of equal rows the first.
    n_subdomains_, n_lenders_ : int
        The paper's K and r.
    subdomain_size_ : int
        The M that was used: all rows, if they are fewer than was asked for.
    plan_ : Plan
        M, p, K and seconds of the fit, with findings where M or p are poor; print it.
    machine_ : Machine
        With the hyperparameters found.
    length_scales_ : ndarray of shape (n_features_in_,)
        The machine's metric: routing measures distances between ``X / length_scales_``.
    states_ : list of named tuples
        What each subdomain's machine has precomputed.
    router_ : router
    timings_ : dict
        Seconds of the stages tuning, partition, cover, machines.
    notes_ : list of str
        What the fit warned of, such as a poor choice of M; a stored model keeps it.
    n_features_in_, n_outputs_ : int
    feature_names_in_ : ndarray of shape (n_features_in_,)
        When X was a data frame with string column names.

    Examples
    --------
    >>> import numpy as np
    >>> from overcover import GP, OverlappingCoverRegressor
    >>> X = np.random.default_rng(0).uniform(-3, 3, (2000, 2))
    >>> y = np.sin(X[:, 0]) * np.cos(X[:, 1])
    >>> model = OverlappingCoverRegressor(
    ...     GP(length_scale=2.0, noise=1e-4), subdomain_size=200, random_state=0
    ... ).fit(X, y)
    >>> mean, std = model.predict([[0.5, 0.5]], return_std=True)
    >>> bool(abs(mean[0] - np.sin(0.5) * np.cos(0.5)) < 0.01), mean.shape == std.shape
    (True, True)
    """

    def __init__(
        self,
        machine=None,
        *,
        subdomain_size=DEFAULT_SIZE,
        overlap=DEFAULT_OVERLAP,
        spread=DEFAULT_SPREAD,
        n_consulted=1,
        partition="kmeans",
        router="variance",
        combine="inverse-distance",
        n_jobs=None,
        random_state=None,
        verbose=0,
    ):
        self.machine = machine
        self.subdomain_size = subdomain_size
        self.overlap = overlap
        self.spread = spread
        self.n_consulted = n_consulted
        self.partition = partition
        self.router = router
        self.combine = combine
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X, y, sample_weight=None, X_target=None):
        """Tune the machine, cover the rows, precompute one machine per subdomain.

        Memory: the states, about ``4 * subdomain_size^2`` bytes per subdomain, or half
        of that in float32, while the machine keeps factors (see `GP`), else
        ``8 * subdomain_size * n_features``;
        `overcover.store.fit_into` keeps them on the disk.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
        sample_weight : array-like of shape (n_samples,), default=None
            Weights compare rows: the noise variance of a row is divided by its weight,
            and a common factor changes nothing. Rows of weight zero are left out.
            Equal rows (inputs and outputs) are merged into one, whose weight is the
            sum of theirs, so that w equal rows and one of weight w are the same.
        X_target : array-like of shape (n_targets, n_features), default=None
            Inputs like those that will be asked, for a machine that weighs rows by
            them ("iwtgp").

        Returns
        -------
        self
        """
        return self._fit(X, y, sample_weight, X_target, InMemory())

    @all_or_nothing
    @with_callbacks
    @keep_notes
    def _fit(self, X, y, sample_weight, X_target, work):
        """`fit`, keeping what it does in `work`: `InMemory`, or a draft on disk."""
        merge = not work.is_merged and make_machine(self.machine).takes_weights
        X, Y, weight, rows = check_training_data(self, X, y, sample_weight, True, merge)
        warn_of_few_rows(len(X))
        rows = work.rows if rows is None else rows
        self._check_options()
        shape = CoverShape.of(self, len(X), Y.shape[1])
        if isinstance(self.partition, str):  # a clusterer may make more, or fewer
            self._check_consulted(shape.n_subdomains)
        in_memory = isinstance(work, InMemory)
        warn_of_poor_choices(shape, X.shape[1], Y.shape[1], self.machine, in_memory)
        rng, n_jobs = check_random_state(self.random_state), self.n_jobs
        progress = FitProgress(self, n_stages=4, verbose=self.verbose)

        with progress.stage("tuning"):
            machine, weight = work.stage(
                "metric", rng, self._tune, X, Y, weight, X_target, shape.size, rng
            )
            scales = machine.length_scales(X)
            X_metric = without_far_cells(Rows(X, scales))
        with progress.stage("partition"):
            wanted = shape.n_subdomains, self.partition
            partition = work.stage(
                "partition", rng, partition_rows, X_metric, *wanted, n_jobs, rng
            )
        with progress.stage("cover"):
            sizes = shape.size, shape.overlap, shape.spread
            cover = work.stage(
                "cover", rng, cover_partition, X_metric, partition, *sizes, n_jobs
            )
            self._check_consulted(len(cover.members))
            known = self._router_name(machine), X_metric, cover, partition.labels
            router = work.stage("router", rng, routing.make_router, *known, n_jobs)
        with progress.stage("machines", len(cover.members)):
            fits = fit_machines(machine, X, Y, weight, cover, n_jobs, work, rows)
            states = work.gathered(machine, progress.track(fits))
            machine.calibrate(states)

        self.machine_, self.length_scales_ = machine, scales
        self.cover_ = cover.renumbered(rows)
        self.states_, self.router_ = states, router
        shape = shape._replace(n_subdomains=len(states))
        self.n_subdomains_, self.subdomain_size_ = shape.n_subdomains, shape.size
        self.n_lenders_ = shape.n_lenders
        self.timings_ = progress.seconds
        progress.finish()
        return self

    @property
    def plan_(self):
        """What came of the fit, as `overcover.planning.Plan`."""
        if not self.__sklearn_is_fitted__():
            raise AttributeError("plan_ is there after fit; overcover.plan before.")
        return describe_fit(self)

    def explain(self, X, n_neighbors=5):
        """Say why: who answered, with how much say, and which rows are near.

        Parameters
        ----------
        X : array-like of shape (n_queries, n_features) or (n_features,)
        n_neighbors : int, default=5
            Nearest training rows to list. Every training row is looked at.

        Returns
        -------
        Explanation, or a tuple of them if X has two axes
            With plain attributes; see `overcover.explain.Explanation`. Print it.
        """
        return explain(self, X, n_neighbors)

    def _html_repr(self):
        # scikit-learn's diagram, and what came of the fit.
        diagram = super()._html_repr()
        if not self.__sklearn_is_fitted__():
            return diagram
        return f"{diagram}\n{element('p', summary(self))}"

    def _tune(self, X, Y, weight, X_target, size, rng):
        """The machine with its hyperparameters, and the weights of the rows."""
        machine = make_machine(self.machine)
        weight = machine.weigh(X, weight, X_target, rng)
        machine.tune(X, Y, weight, size, rng, self.n_jobs)
        return machine, weight

    def save(self, path, dtype=None, notes=None):
        """Write the fitted model to a directory that `overcover.load` opens.

        Parameters
        ----------
        path : str or path-like
            Made if there is none, replaced if it is a store, refused otherwise.
        dtype : {None, "float64", "float32"}, default=None
            None is exact; "float32" halves the size. See `overcover.store.save`.
        notes : dict or None, default=None
            Plain values to keep beside the model; `overcover.store.inspect` gives them
            back.
        """
        from .store import save  # which makes models, so it imports this module

        check_is_fitted(self)
        save(self, path, dtype, notes)

    def __sklearn_is_fitted__(self):
        return hasattr(self, "states_")

    def _asked(self):
        return self.machine_

    def _predict_rows(self, X, return_std):
        # Within a round all queries of a subdomain go together.
        step = self._rows_per_round()
        rounds = [
            self._predict_round(X[i : i + step], return_std)
            for i in range(0, len(X), step)
        ]
        mean = np.concatenate([answered.mean for answered in rounds])
        if not return_std:
            return Prediction(mean, None)
        return Prediction(mean, np.concatenate([answered.std for answered in rounds]))

    def _predict_round(self, X, return_std) -> Prediction:
        _, answers, weights = self._consult(X, return_std)
        return combination.mixture(weights, answers.mean, answers.variance)

    def _rows_per_round(self):
        """How many queries to answer together."""
        n_listed = max(self.router_.n_listed, self.n_consulted)
        is_asked_first = isinstance(self.router_, routing.VarianceRouter)
        is_asked_first = is_asked_first and not self.machine_.doubts_first
        n_asked = n_listed if is_asked_first else self.n_consulted
        # Names and distances of candidates; mean and variance of those asked, and once
        # more of their mixture.
        numbers = 4 * n_listed + (n_asked + 1) * 2 * self.n_outputs_
        n_rows = max(1, ROUND_BYTES // (8 * numbers))
        # The same for a model that was loaded, so that it answers bit by bit the same.
        if self.machine_.keeps_factors(self.n_subdomains_, self.subdomain_size_):
            n_rows = min(n_rows, ROUND_QUERIES * self.n_subdomains_)
        return n_rows

    def _consult(self, X, return_std) -> Consultation:
        self._check_consulted(self.n_subdomains_)  # it may have been changed since
        n_consulted, machine = self.n_consulted, self.machine_
        # Threads take longer to start than a few answers.
        n_jobs = self.n_jobs if len(X) > 8 else 1
        by_variance = isinstance(self.router_, routing.VarianceRouter)
        Z = Rows(X, self.length_scales_, bounds=(-FARTHEST, FARTHEST))
        X = Rows(X)
        route = self.router_.route(Z, n_consulted, n_jobs)
        if by_variance and machine.doubts_first:
            doubts = ask_doubts(machine, self.states_, X, route, n_jobs)
            route, _ = routing.most_certain(route, doubts, n_consulted)
            by_variance = False
        variance = return_std or by_variance or self.combine == "precision"
        answers = ask(machine, self.states_, X, route, variance, n_jobs)
        if by_variance and n_consulted == 1:
            weights = combination.soft_weights(answers.doubt)
            return Consultation(route, answers, weights)
        if by_variance:
            route, kept = routing.most_certain(route, answers.doubt, n_consulted)
            answers = Answer(*(np.take_along_axis(a, kept, axis=1) for a in answers))
        weights = combination.weights_of(
            self.combine, route.distances, answers.variance
        )
        return Consultation(route, answers, weights)

    def _router_name(self, machine):
        if self.combine == "precision" and not machine.has_variance:
            raise ValueError(
                f"combine='precision' weighs answers by their variance, which "
                f"{machine!r} does not have. Choose 'inverse-distance' or 'nearest'."
            )
        if self.router == "variance" and not machine.has_variance:
            return "euclidean"
        return self.router

    def _check_consulted(self, n_subdomains):
        if self.n_consulted > n_subdomains:
            raise ValueError(
                f"n_consulted={self.n_consulted} is more than the number of "
                f"subdomains, {n_subdomains}. Give n_consulted={n_subdomains} or less, "
                "or cover the rows with more and smaller subdomains (subdomain_size)."
            )

    def _check_options(self):
        check_cover_options(self.subdomain_size, self.overlap, self.spread)
        check_count("n_consulted", self.n_consulted, 1, "1 suits a large overlap.")
        check_choice("router", self.router, routing.NAMES)
        check_choice("combine", self.combine, combination.RULES)
