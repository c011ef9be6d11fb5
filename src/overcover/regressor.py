"""`OverlappingCoverRegressor`: the whole path composed, nothing else.

X, Y -> metric -> partition -> cover -> machines -> routing -> combination
-> prediction
"""

import numpy as np
from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin

from . import consult, inputs, routing
from ._markup import element
from ._notes import keep_notes
from ._numbers import numbers_of
from ._parallel import one_thread_per_worker
from ._progress import CallbackSupportMixin, FitProgress, with_callbacks
from ._validation import (
    all_or_nothing,
    check_choice,
    check_count,
    check_groups,
    check_training_data,
    take_names,
    warn_of_codes,
    warn_of_few_rows,
)
from .choices import choose_scales, recipe_of
from .cover import DEFAULT_OVERLAP, DEFAULT_SIZE, DEFAULT_SPREAD, check_cover_options
from .explain import summary
from .fitting import Fit, InMemory
from .learning import LearnsOn
from .machines import FullModel, TakesMachine, make_machine
from .planning.result import describe_fit
from .tables import encode_training
from .targets import check_target

# The rows of so many subdomains say how far the inputs of all rows spread.
RELEVANCE_SUBDOMAINS = 64


class OverlappingCoverRegressor(
    TakesMachine,
    LearnsOn,
    FullModel,
    CallbackSupportMixin,
    MultiOutputMixin,
    RegressorMixin,
    BaseEstimator,
):
    """Kernel regression on an overlapping domain cover.

    The fit divides the rows into clusters of equal size. Every cluster borrows rows
    from its neighbours and becomes a subdomain of `subdomain_size` rows, to which one
    local machine is fitted. A router chooses the subdomains that predict a query.
    Training costs O(N M^2 / (1 - p)). A query costs O(M^2), whatever N is, or O(M) for
    the mean alone if the router does not need variances.

    Parameters
    ----------
    machine : Machine, {"gp", "tgp", "iwtgp", "smtgp"} or None, default=None
        The model that is fitted to every subdomain; None is ``GP()``. It may be any
        scikit-learn regressor, too (it becomes an `AnyRegressor`).
    subdomain_size : int or "auto", default=800
        The paper's M: rows of a subdomain. More are more accurate and slower.
        "auto" chooses by the number of rows, and keeps factors within 4 GiB; see
        `overcover.planning.auto_size` for the rule, `overcover.plan` for costs.
    overlap : float in [0, 1), default=0.9
        The paper's p: share of a subdomain's rows that other clusters own. 0 is a
        partition into independent machines.
    spread : float >= 1, default=3.0
        The paper's t: the number of neighbouring clusters that lend rows, as a multiple
        of the smallest possible number.
    n_consulted : int, default=1
        The paper's K': number of subdomains that predict a query together.
    partition : {"kmeans", "ab", "imda", "rpc", "two-level"} or clusterer, \
default="kmeans"
        See `overcover.partition.partition_rows`.
    router : {"variance", "mahalanobis", "mahalanobis-squared", "euclidean", \
"neighbors", "density"}, default="variance"
        Which subdomains predict a query; see `overcover.routing`. With a machine that
        has no variance, "variance" acts as "euclidean".
    combine : {"auto", "certainty", "inverse-distance", "precision", "nearest"}, \
default="auto"
        The weights of several subdomains; see `overcover.combination`. "auto" is
        "certainty" with the router "variance" and ``n_consulted=1``: candidates that
        are about equally certain share the weight. Otherwise it is "inverse-distance".
    target : {"auto", "identity", "log", "logit", "yeo-johnson"}, ("logit", low, \
high) or transformer, default="auto"
        The scale on which outputs are modelled; all predictions are in units of y.
        "log" is for positive outputs, "logit" for outputs between 0 and 1, or between
        bounds, "yeo-johnson" for skewed outputs and counts. "auto" chooses, for each
        skewed output, the scale on which held-out rows are predicted best; it is
        "identity" if the difference is small, or if the machine does not learn its
        metric. A scikit-learn transformer must be increasing and have an
        `inverse_transform`. See `overcover.targets`.
    input_scale : {"auto", "identity"}, default="auto"
        "auto" looks for columns of X with long tails, such as incomes or areas, and
        models them on a scale that is a logarithm in the tail, if held-out rows are
        then predicted better and the machine learns its metric. See
        `overcover.inputs`. "identity" leaves X as it is.
    encoder : TableEncoder or None, default=None
        How a DataFrame with words, dates or missing values becomes numbers; None is
        ``TableEncoder()``. Arrays, and DataFrames of numbers alone, need none.
    n_jobs : int or None, default=None
        Threads that work on different subdomains, each with one BLAS thread. Results
        do not depend on it.
    random_state : int, RandomState or None, default=None
        Determines the rows on which tuning works, and the seeds of the partition.
    verbose : int, default=0
        1 shows progress bars. The logger "overcover" of Python's `logging` has a line
        for every stage, whatever `verbose` is.

    Attributes
    ----------
    cover_ : Cover
        The rows of every subdomain, by their numbers in X; of equal rows the first.
    n_subdomains_, n_lenders_, subdomain_size_ : int
        The paper's K and r, and the M that was used: at most the number of rows.
    budget_choice_ : tuple
        The M and p that a budget has chosen; only if there was one.
    plan_ : Plan
        M, p, K and seconds of the fit, with advice about M and p; print it.
    machine_ : Machine
        With its tuned hyperparameters.
    length_scales_ : ndarray of shape (n_features_in_,)
        The machine's metric: routing measures distances between ``X / length_scales_``.
        One for each input of `encoder_`, if there is one.
    target_ : Scales, Transformed or Unchanged
        The scales of the outputs; ``target_.names`` has a word for each.
    input_scales_ : InputScales
        Only if columns of X are on another scale; `length_scales_`, `relevance_` and
        everything that describes inputs are about that scale.
    encoder_ : TableEncoder
        Only if X was a DataFrame with words, dates or missing values.
    states_ : list of named tuples
        The state of each subdomain: all that its machine has precomputed.
    router_ : router
    timings_ : dict
        Seconds of the stages scales (of inputs and outputs), tuning, partition, cover,
        machines; and of learning, the work of `partial_fit` and `forget`.
    n_samples_seen_ : int
        Rows given to `fit` and `partial_fit` so far: the number of the next row.
    n_samples_tuned_ : int
        Rows that the model had when it was fitted or tuned again.
    relevance_ : ndarray of shape (n_features_in_,)
        Shares of the inputs in the squared distances between rows, in the machine's
        metric. The function varies fast along an input with a large share. The share
        does not measure how much the error grows without the input; scikit-learn's
        `permutation_importance` does. If all inputs have one length scale, the shares
        are those of their variances. One for each input of `encoder_`, if there is one.
    notes_ : list of str
        Warnings of the fit, such as a poor choice of M; a stored model keeps them.
    n_features_in_, n_outputs_, feature_names_in_
        As in scikit-learn.

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
        combine="auto",
        target="auto",
        input_scale="auto",
        encoder=None,
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
        self.target = target
        self.input_scale = input_scale
        self.encoder = encoder
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X, y, sample_weight=None, X_target=None, groups=None, budget=None):
        """Tune the machine, make the cover, and fit a machine to each subdomain.

        Memory: the states, about ``4 * subdomain_size^2`` bytes per subdomain, or half
        of that in float32, while the machine keeps factors (see `GP`), else ``8 *
        subdomain_size * n_features``; `overcover.store.fit_into` keeps them on disk.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Numbers, or a DataFrame that may hold words, dates and missing values too.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
        sample_weight : array-like of shape (n_samples,), default=None
            Weights compare rows: the noise variance of a row is divided by its weight,
            and a common factor changes nothing. Rows of weight zero are left out.
            Equal rows (inputs and outputs) are merged into one, whose weight is the
            sum of theirs, so that w equal rows and one of weight w are the same.
        X_target : array-like of shape (n_targets, n_features), default=None
            Inputs that resemble the queries, for a machine that weights rows by them
            ("iwtgp").
        groups : array-like of shape (n_samples,), default=None
            Rows of a group belong together, such as those of one patient. Tuning and
            calibration hold them out together, so that intervals are right for new
            groups. Without groups, runs of consecutive rows are held out together if
            they depend on each other.
        budget : str, float, dict or None, default=None
            Limit of the fit: a time such as "30s" or "10m", seconds, or a dict as in
            `overcover.plan`, which then chooses `subdomain_size` and, for a small
            budget, a smaller overlap. The choice depends on the speed of the computer;
            a second or two of the time are spent on measuring it. `partial_fit` and
            `retune` keep the choice.
        """
        groups = check_groups(groups, X)
        return self._fit(X, y, sample_weight, X_target, InMemory(), groups, budget)

    @all_or_nothing
    @one_thread_per_worker()
    @with_callbacks
    @keep_notes
    def _fit(
        self,
        X,
        y,
        sample_weight,
        X_target,
        runner,
        groups=None,
        budget=None,
        choice=None,
    ):
        """`fit`, by a runner of its stages, see `overcover.fitting`; checked groups.

        `choice` is what an earlier budget has chosen, see `budget_choice_`.
        """
        self._check_options()
        known = X, sample_weight, X_target, groups, runner
        data, X_target, groups = self._training_data(y, *known)
        for earlier in ("target_", "input_scales_", "budget_choice_"):
            self.__dict__.pop(earlier, None)
        progress = FitProgress(self, n_stages=5, verbose=self.verbose)
        with progress.stage("scales"):
            scales, target = choose_scales(self, data, groups)
        if hasattr(self, "encoder_") and np.any(target.is_changed):
            # It learns effects of words on outputs: on the scale of the model.
            Z = target.forward(numbers_of(y, "y").reshape(len(y), -1))
            Z[~np.isfinite(Z)] = 0.0  # of rows without weight
            data, X_target, groups = self._training_data(Z.reshape(np.shape(y)), *known)
        else:
            data = data._replace(Y=target.forward(data.Y))
        warn_of_few_rows(len(data.X))
        warn_of_codes(data.X)
        recipe = recipe_of(self, data, runner.in_memory, budget, choice)
        recipe = recipe._replace(target=target, input_scales=scales)
        fit = Fit(recipe, data, X_target, groups)

        with progress.stage("tuning"):
            runner.run(fit, "tune")
        with progress.stage("partition"):
            runner.run(fit, "partition")
        with progress.stage("cover"):
            runner.run(fit, "cover")
            consult.check_consulted(self.n_consulted, fit.n_subdomains)
            runner.run(fit, "router")
        with progress.stage("machines", fit.n_subdomains):
            runner.fit_machines(fit, progress.track)

        self.machine_, self.length_scales_ = fit.machine, fit.length_scales
        self.cover_ = fit.cover.renumbered(data.rows)
        self.states_, self.router_ = fit.states, fit.router
        self.n_samples_seen_ = runner.n_given or data.n_given
        self.weight_unit_, self.n_samples_tuned_ = data.unit, len(data.X)
        self._forget_learning()
        if groups is not None:
            self.groups_ = groups
        shape = fit.recipe.shape._replace(n_subdomains=fit.n_subdomains)
        self.n_subdomains_, self.subdomain_size_ = shape.n_subdomains, shape.size
        self.n_lenders_ = shape.n_lenders
        self.timings_ = progress.seconds
        progress.finish()
        return self

    def _training_data(self, y, X, sample_weight, X_target, groups, runner):
        """Checked rows, with X_target as numbers and the groups of these rows."""
        merge = not runner.is_merged and make_machine(self.machine).takes_weights
        table = X
        X, X_target = encode_training(self, X, y, sample_weight, X_target, groups)
        data = check_training_data(self, X, y, sample_weight, True, merge)
        if X is not table:
            take_names(self, table)
        if groups is not None and data.rows is not None:
            groups = groups[data.rows]
        if data.rows is None:
            data = data._replace(rows=runner.rows)
        return data, X_target, groups

    @property
    def plan_(self):
        """The result of the fit as an `overcover.planning.Plan`."""
        if not self.__sklearn_is_fitted__():
            raise AttributeError("plan_ is there after fit; overcover.plan before.")
        return describe_fit(self)

    @property
    def relevance_(self):
        """Shares of the inputs in squared distances between rows."""
        if not self.__sklearn_is_fitted__():
            raise AttributeError("relevance_ is there after fit.")
        places = np.linspace(0, self.n_subdomains_ - 1, RELEVANCE_SUBDOMAINS)
        parts = []
        for k in np.unique(places.astype(int)):
            recalled = self.machine_.recall(self.states_[k])
            if recalled is None:
                name = type(self.machine_).__name__
                raise AttributeError(f"{name} keeps no rows: there is no relevance_.")
            parts.append(recalled.X[: self.cover_.n_owned[k]])
        rows = np.concatenate(parts)
        variances = (rows / self.length_scales_).var(axis=0)
        total = variances.sum()
        return variances / total if total > 0 else variances

    def _html_repr(self):
        # scikit-learn's diagram, and a summary of the fit.
        diagram = super()._html_repr()
        if not self.__sklearn_is_fitted__():
            return diagram
        return f"{diagram}\n{element('p', summary(self))}"

    def __sklearn_is_fitted__(self):
        return "length_scales_" in vars(self)

    @property
    def errors_(self):
        return self.machine_.errors_

    def _predict_rows(self, X, return_std, noise=True):
        return consult.predict(consult.panel_of(self), X, return_std, noise)

    def _covariance_rows(self, X, noise):
        return consult.covariance(consult.panel_of(self), X, noise)

    def _gradient_rows(self, X):
        slopes = consult.gradient(consult.panel_of(self), X)
        if hasattr(self, "input_scales_"):
            slopes *= self.input_scales_.slopes(X)[..., None]
        return slopes

    def _check_options(self):
        check_cover_options(self.subdomain_size, self.overlap, self.spread)
        check_count("n_consulted", self.n_consulted, 1, "1 suits a large overlap.")
        check_choice("router", self.router, tuple(routing.ROUTERS))
        check_choice("combine", self.combine, consult.CHOICES)
        check_choice("input_scale", self.input_scale, inputs.CHOICES)
        check_target(self.target)
