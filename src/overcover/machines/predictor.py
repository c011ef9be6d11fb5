"""What users call on a fitted model: predictions, intervals, log densities."""

from typing import Any, NamedTuple

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from .._linalg import add_to_diagonal, cholesky
from .._outcomes import Outcomes
from .._validation import (
    as_training_shape,
    check_count,
    check_coverage,
    check_observed,
    check_probabilities,
    check_queries,
)
from ..targets import Unchanged
from .errors import Calibrated, Gaussian


class Prediction(NamedTuple):
    """The answer of a model to a batch of queries."""

    mean: np.ndarray
    """Shape (n_queries, n_outputs)."""

    std: np.ndarray | None
    """Standard deviation of a new observation, or of the function where that was asked
    for, mean's shape; None if not wanted."""


def draw(covariance, n_samples, rng):
    """Gaussian samples around zero, shape (n, n_samples).

    The jitter, where the matrix is singular as computed, is relative to each variance.
    """
    std = np.sqrt(np.diag(covariance))
    scale = np.where(std > 0, std, 1.0)
    correlation = add_to_diagonal(covariance / scale / scale[:, None], std == 0)
    L, _ = cholesky(correlation, "The covariance of the queries")
    return std[:, None] * (L @ rng.standard_normal((len(std), n_samples)))


class Predictor:
    """Methods of every fitted model; a subclass gives `_predict_rows`."""

    machine_: Any
    # The way from the scale of the model to the units of the outputs.
    target_: Any = Unchanged()

    def _predict_rows(self, X, return_std, noise=True) -> Prediction:
        """Predict validated rows, float32 or float64, on the scale of the model."""
        raise NotImplementedError

    def _covariance_rows(self, X, noise) -> tuple[np.ndarray, np.ndarray]:
        """Means, shape (n, n_outputs), and covariances, shape (n_outputs, n, n)."""
        raise ValueError(
            f"{type(self).__name__} gives no covariances. Use return_std=True, or fit "
            "OverlappingCoverRegressor() or GP()."
        )

    @property
    def _answering_machine(self):
        """The machine that answers."""
        return self.machine_

    @property
    def errors_(self) -> Gaussian | Calibrated:
        """How errors are distributed: Gaussian, unless left-out rows say more."""
        return Gaussian()

    def predict(self, X, return_std=False, return_cov=False, *, noise=True):
        """Predict the outputs of new rows.

        Parameters
        ----------
        X : array-like of shape (n_queries, n_features)
        return_std : bool, default=False
            Also return standard deviations.
        return_cov : bool, default=False
            Also return covariances between the queries; only for GP machines. Those of
            a GP alone are exact. In a cover they are exact between queries that the
            same subdomains predict with the same weights, smaller if the weights
            differ, and zero if no subdomain predicts both queries. If `target` is
            another scale, correlations are those on this scale. Memory:
            ``8 * n_queries**2`` bytes for every output, and once more for each thread.
        noise : bool, default=True
            Whether these are of a new observation, or of the function without the
            noise of an observation; False is only for GP machines. If `target` is
            another scale, the mean depends on it, too.

        Returns
        -------
        mean : ndarray of shape (n_queries,) or (n_queries, n_outputs)
        std : ndarray of mean's shape
            Only if `return_std`.
        cov : ndarray of shape (n_queries, n_queries) or (n_queries, n_queries, \
n_outputs)
            Only if `return_cov`. Its diagonal is ``std**2``.

        Examples
        --------
        >>> from overcover import GP
        >>> rng = np.random.default_rng(0)
        >>> X = np.linspace(0, 6, 80)[:, None]
        >>> model = GP().fit(X, np.sin(X[:, 0]) + rng.normal(0, 0.1, 80))
        >>> _, std = model.predict([[1.5]], return_std=True)
        >>> _, std_of_function = model.predict([[1.5]], return_std=True, noise=False)
        >>> bool(0.08 < std[0] < 0.12), bool(std_of_function[0] < 0.05)
        (True, True)
        """
        X = self._queries(X)
        if return_std and return_cov:
            raise ValueError(
                "return_std and return_cov are both True. Give one: the variances are "
                "the diagonal of the covariances."
            )
        if return_std or return_cov:
            self._check_variance()
        is_changed = np.any(self.target_.is_changed)
        if return_cov:
            self._check_posterior("covariances")
            mean, cov = self._covariance_rows(X, noise)
            if is_changed:
                std = np.sqrt(np.diagonal(cov, axis1=1, axis2=2).T)
                outcomes = self._outcomes(Prediction(mean, std), noise)
                mean, cov = outcomes.moments()[0], outcomes.covariances(cov)
            return self._shaped(mean, np.moveaxis(cov, 0, -1))
        if return_std and not noise:
            self._check_posterior("variances without noise")
        # On another scale, means depend on standard deviations.
        wanted = return_std or (is_changed and self._answering_machine.has_variance)
        answer = self._predict_rows(X, wanted, noise)
        mean, std = self._outcomes(answer, noise).moments()
        return self._shaped(mean, std) if return_std else as_training_shape(self, mean)

    def _queries(self, X):
        """Validated rows, if the model is fitted."""
        check_is_fitted(self)
        return check_queries(self, X)

    def _shaped(self, *parts):
        """Arrays without the axis of outputs, if y had none."""
        return tuple(as_training_shape(self, part) for part in parts)

    def _outcomes(self, answer, noise=True) -> Outcomes:
        """Answers on the scale of the model, in units of the outputs."""
        has_errors = noise and answer.std is not None
        errors = self.errors_ if has_errors else Gaussian()
        return Outcomes(answer.mean, answer.std, errors, self.target_)

    def _outcomes_at(self, X) -> Outcomes:
        """What may be observed at queries."""
        X = self._queries(X)
        self._check_variance()
        return self._outcomes(self._predict_rows(X, True))

    def _check_variance(self):
        """Refuse to give what needs a variance, where there is none."""
        if not self._answering_machine.has_variance:
            raise ValueError(
                f"{self._answering_machine!r} has no predictive variance, so it can "
                "give neither std nor intervals. Predict without return_std, or use "
                "GP(), whose variance is exact."
            )

    def _check_posterior(self, wanted):
        """Refuse to give what only the posterior of a Gaussian process has."""
        if not self._answering_machine.has_posterior:
            raise ValueError(
                f"{self._answering_machine!r} has no {wanted}: only Gaussian processes "
                "do. Use GP() as the machine."
            )

    def predict_interval(self, X, coverage=0.95):
        """Central intervals that contain a new observation with a given probability.

        The probabilities below and above the interval are equal: the ends are those of
        `predict_quantile`. They come from the distribution of leave-one-out errors if
        the machine has them, otherwise from a Gaussian.

        Parameters
        ----------
        X : array-like of shape (n_queries, n_features)
        coverage : float, default=0.95

        Returns
        -------
        low, high : ndarray of shape (n_queries,) or (n_queries, n_outputs)
        """
        check_coverage(coverage)
        return self._shaped(*self._outcomes_at(X).interval(coverage))

    def predict_quantile(self, X, q):
        """Values that a new observation stays below with a given probability.

        Quantiles come from the distribution of leave-one-out errors if the machine has
        them, otherwise from a Gaussian. If the errors are skewed, so are the quantiles.

        Parameters
        ----------
        X : array-like of shape (n_queries, n_features)
        q : float or array-like of shape (n_quantiles,)
            Probabilities between 0 and 1, both excluded; 0.5 is the median.

        Returns
        -------
        ndarray of shape (n_queries,) or (n_queries, n_outputs)
            With another, last axis of length n_quantiles if `q` is an array.

        Examples
        --------
        >>> from overcover import GP
        >>> rng = np.random.default_rng(0)
        >>> X = rng.uniform(0, 6, (400, 1))
        >>> model = GP().fit(X, np.sin(X[:, 0]) + 0.2 * rng.exponential(size=400))
        >>> low, middle, high = model.predict_quantile([[2.0]], [0.05, 0.5, 0.95])[0]
        >>> bool(high - middle > 2 * (middle - low))  # the noise is exponential
        True
        """
        levels = check_probabilities(q)
        outcomes = self._outcomes_at(X)
        parts = self._shaped(*map(outcomes.quantile, levels.ravel()))
        return np.stack(parts, axis=-1) if levels.ndim else parts[0]

    def log_density(self, X, y):
        """Log predictive density of observed outputs; its mean is minus the NLPD.

        If the machine has leave-one-out errors, the density is a Student t with their
        tails, so that a gross outlier costs dozens, not thousands.

        Parameters
        ----------
        X : array-like of shape (n_queries, n_features)
        y : array-like of shape (n_queries,) or (n_queries, n_outputs)

        Returns
        -------
        ndarray of y's shape
        """
        outcomes = self._outcomes_at(X)
        Y = check_observed(y, as_training_shape(self, outcomes.mean))
        density = outcomes.log_density(Y.reshape(outcomes.mean.shape))
        return density.reshape(Y.shape)


class FullModel(Predictor):
    """A predictor that can be explained and stored: a cover, or a machine alone."""

    def _gradient_rows(self, X) -> np.ndarray:
        """Slopes at validated rows, shape (n, n_features, n_outputs)."""
        raise NotImplementedError

    def sample_y(self, X, n_samples=1, random_state=0, *, noise=True):
        """Draw outputs of new rows from their joint distribution.

        Outputs are drawn independently of each other, and from a Gaussian (on the scale
        of `target`), even if leave-one-out errors have heavier tails.

        Parameters
        ----------
        X : array-like of shape (n_queries, n_features)
        n_samples : int, default=1
        random_state : int, RandomState or None, default=0
        noise : bool, default=True
            Whether to draw new observations, or functions without noise.

        Returns
        -------
        ndarray of shape (n_queries, n_samples) or (n_queries, n_outputs, n_samples)

        Examples
        --------
        >>> from overcover import GP
        >>> X = np.linspace(0, 6, 60)[:, None]
        >>> model = GP().fit(X, np.sin(X[:, 0]))
        >>> model.sample_y([[1.0], [1.5], [2.0]], n_samples=5).shape
        (3, 5)
        """
        check_count("n_samples", n_samples, 1, "It is how often to draw.")
        X = self._queries(X)
        self._check_posterior("covariances to draw from")
        mean, covariances = self._covariance_rows(X, noise)
        rng = check_random_state(random_state)
        samples = np.empty((*mean.shape, n_samples))
        for j, C in enumerate(covariances):
            samples[:, j] = mean[:, j, None] + draw(C, n_samples, rng)
        if np.any(self.target_.is_changed):
            parts = [self.target_.inverse(part) for part in np.moveaxis(samples, -1, 0)]
            samples = np.stack(parts, axis=-1)
        return np.moveaxis(as_training_shape(self, np.moveaxis(samples, 1, -1)), 1, -1)

    def gradient(self, X):
        """Gradients of the predicted mean, for GP machines.

        In a cover, the gradient is the weighted mean of those of the subdomains, with
        constant weights. It ignores the small change of the mean where the weights
        change. With the kernel "matern12" the mean has a kink at every training row;
        the gradient there is the mean of the slopes on both sides. With a kernel
        object, gradients are central differences. If `target` is another scale, they
        are slopes of the mean with a constant variance.

        Parameters
        ----------
        X : array-like of shape (n_queries, n_features)

        Returns
        -------
        ndarray of shape (n_queries, n_features) or (n_queries, n_features, n_outputs)
            In units of the output for each unit of the input.

        Examples
        --------
        >>> from overcover import GP
        >>> X = np.linspace(0, 6, 60)[:, None]
        >>> model = GP().fit(X, np.sin(X[:, 0]))
        >>> model.gradient([[0.5], [3.0]]).round(2).tolist()  # cosines
        [[0.88], [-0.99]]
        """
        X = self._queries(X)
        self._check_posterior("gradient")
        slopes = self._gradient_rows(X)
        if np.any(self.target_.is_changed):
            slopes *= self._outcomes(self._predict_rows(X, True)).slopes()[:, None]
        return as_training_shape(self, slopes)

    def explain(self, X, n_neighbors=5):
        """Explain predictions by subdomains, their weights and the nearest rows.

        Parameters
        ----------
        X : array-like of shape (n_queries, n_features) or (n_features,)
        n_neighbors : int, default=5
            Nearest training rows to list. The search reads every training row.

        Returns
        -------
        Explanation, or a tuple of them if X has two axes
            With plain attributes; see `overcover.explain.Explanation`. Print it.
        """
        from ..explain import explain  # which is for whole models, so it comes later

        return explain(self, X, n_neighbors)

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
        from ..store import save  # which makes models, so it imports this module

        check_is_fitted(self)
        save(self, path, dtype, notes)
