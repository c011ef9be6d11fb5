r"""Calibration: leave-one-out residuals correct the posterior variance.

For a GP, the error at row i of a machine without this row has a closed form,
:math:`\alpha_i / [A^{-1}]_{ii}`, with predicted variance :math:`1 / [A^{-1}]_{ii}` on
the kernel's scale. Their ratio squared, :math:`z_i^2 = \alpha_i^2 / [A^{-1}]_{ii}`, is
used three times:

1. its average, weighted by closeness to the query, is the *local scale* of the
   variance, so a subdomain may be noisier on one side than on the other. Closeness is a
   power of the similarity, such that a given number of rows have most of the weight;
   the log density of the left-out rows chooses this number;
2. the mean of the remaining ratios over all rows gives one *factor* per output, with
   the highest log density of left-out rows;
3. the distribution of the ratios after that gives the *half width* of intervals, so
   that heavy tails do not reduce their coverage, and the *tail* of a Student t
   distribution, so that one gross outlier does not dominate the log density. If the
   signs of residuals show that errors are skewed, each *end* has a separate width.

Left-out rows show the size of errors up to a variance :math:`\eta_r` on the kernel's
scale, the *reach*. Farther away :math:`\eta` grows to :math:`\eta_0`, that of the
prior. There the variance must grow to that of the prior, or to the spread of the
outputs, :math:`v`, if that is larger, however small the errors near the rows are:

.. math:: \sigma^2 = \max\bigl(s \eta, \; (s \eta_r)^{1 - t} v^t\bigr), \qquad
    t = \log(\eta / \eta_r) / \log(\eta_0 / \eta_r) ,

with s the local scale times the factor. (Errors of a function that is smoother than the
kernel grow as a power of :math:`\eta`, which is a straight line between logarithms.)
Blocks of rows left out may make it larger, see `overcover.machines.gaps`.
"""

from typing import NamedTuple

import numpy as np

from .._compiled import compiled_loosely, read_only
from .._records import finite, not_negative, positive, record, whole
from . import errors, gaps
from .base import Machine

# How many rows may decide a local scale; all, if noise is the same everywhere.
LOCALITIES = (np.inf, 200.0, 60.0, 25.0)
MOST_SQUARINGS = 30
# The subdomain's average counts as much as this many rows at the query itself.
PRIOR_ROWS = 10.0
# Where a subdomain's outputs are all equal, no error has been seen yet; a thousandth
# of the usual deviation is then still allowed for.
LEAST_SHARE = 1e-6
# Rows left out are taken to say how large errors are up to this quantile of variances.
REACH = 0.9
# Nothing learned from few rows makes variances larger than by this factor.
MOST_LEARNED = 3.0
# Outputs whose deviation is this small a share of their size do not vary.
FLAT = 1e-12


@record(
    locality=whole("q", 0, "L"),
    least_scale=not_negative("q"),
    factor=not_negative("q"),
    quantiles=not_negative(f"{len(errors.LEVELS)} q"),
    tail=positive("q"),
    width=not_negative("q"),
    output_mean=finite("q"),
    output_variance=positive("q"),
    ends=finite(f"2 {len(errors.LEVELS)} q"),
    growth=positive(f"{gaps.N_STEPS} q"),
)
class Calibration(NamedTuple):
    """Corrections of the machines' variances."""

    locality: np.ndarray
    """Which of `LOCALITIES` the scale of each output goes by, shape (n_outputs,)."""

    least_scale: np.ndarray
    """No local scale is taken to be smaller, shape (n_outputs,)."""

    factor: np.ndarray
    """Multiplies the variance of each output, shape (n_outputs,)."""

    quantiles: np.ndarray
    """Of ``|error| / std`` at `errors.LEVELS`, shape (n_levels, n_outputs)."""

    tail: np.ndarray
    """Degrees of freedom of the Student t that fits ``error / std`` best, shape
    (n_outputs,)."""

    width: np.ndarray
    """Its scale, shape (n_outputs,)."""

    output_mean: np.ndarray
    """Mean of all outputs, shape (n_outputs,)."""

    output_variance: np.ndarray
    """Their variance, shape (n_outputs,), positive."""

    ends: np.ndarray
    """Of ``error / std``, how far below and above zero the central share at
    `errors.LEVELS` goes, shape (2, n_levels, n_outputs)."""
    growth: np.ndarray
    """How many times the average squared residuals are in gaps, by how little is known
    there, shape (n_steps, n_outputs); see `overcover.machines.gaps`."""

    def spread_around(self, mean):
        """Mean squared distance of all outputs from a subdomain's mean, (n_outputs,).

        That is the error far away, where a subdomain can only answer with its mean.
        """
        return self.output_variance + (mean - self.output_mean) ** 2

    @classmethod
    def older(cls, quantiles, **fields):
        """What older stores lack: variances far away, signs of errors, and gaps."""
        # Variances were only compared between subdomains, so that any unit will do.
        size = np.ones(quantiles.shape[1])
        known = {"output_mean": np.zeros_like(size), "output_variance": size}
        growth = np.ones((gaps.N_STEPS, len(size)))
        return known | {"ends": errors.alike(quantiles), "growth": growth}


def squarings_for(similarity, n_rows):
    """The least power of two at which about `n_rows` rows decide; -1 for all alike.

    Similarity of shape (size, n_owned).

    Examples
    --------
    >>> squarings_for(np.full((100, 1), 0.9), 20.0)  # 100 * 0.9**16 is 18.5
    4
    """
    return -1 if np.isinf(n_rows) else _square_until(n_rows, similarity.copy(), 0)


def _square_until(n_rows, weights, squarings):
    """Square weights, in place, until about `n_rows` rows decide; how often in all."""
    while squarings < MOST_SQUARINGS and weights.sum() > n_rows * weights.shape[1]:
        weights *= weights
        squarings += 1
    return squarings


def leave_one_out_ratios(similarity, residuals_sq):
    """Squared residuals of owned rows over the scale the other rows give them.

    Similarity of shape (size, n_owned), zero between a row and itself; residuals_sq of
    shape (size, n_outputs), owned rows first. Returns ratios of shape (n_localities,
    n_owned, n_outputs) and squarings of shape (n_localities,).
    """
    n_owned = similarity.shape[1]
    owned = residuals_sq[:n_owned]
    # Left out means left out: a row has no part in the average either.
    average = (residuals_sq.sum(axis=0) - owned) / max(1, len(residuals_sq) - 1)
    ratios, squarings = [], []
    weights, n_squared = similarity.copy(), 0
    for n_rows in LOCALITIES:
        scale = average
        if np.isinf(n_rows):
            squarings.append(-1)
        else:
            # Fewer rows than the time before: weights are squared on from there.
            n_squared = _square_until(n_rows, weights, n_squared)
            squarings.append(n_squared)
            scale = PRIOR_ROWS * average + weights.T @ residuals_sq
            scale /= PRIOR_ROWS + weights.sum(axis=0)[:, None]
        ratios.append(np.divide(owned, scale, out=np.ones_like(owned), where=scale > 0))
    return np.array(ratios), np.array(squarings)


def local_scales(similarity, squarings, residuals_sq, average):
    """Average of squared residuals near each query, shape (n_queries, n_outputs).

    Weights are similarities (between 0 and 1, shape (size, n_queries)) to the power
    ``2**squarings[j]`` for output j; a negative entry stands for equal weights.
    """
    scales = np.empty((similarity.shape[1], len(squarings)))
    inputs = (similarity.T, squarings, residuals_sq.T, average)
    _weigh(*(read_only(np.ascontiguousarray(values)) for values in inputs), scales)
    return scales


@compiled_loosely
def _weigh(similarity, squarings, residuals_sq, average, scales):
    """One pass over the similarities of each query, where NumPy takes a dozen."""
    weights = np.empty(similarity.shape[1])
    for q in range(len(similarity)):
        total = 0.0
        for j in range(len(squarings)):
            if j == 0 or squarings[j] != squarings[j - 1]:
                for i in range(len(weights)):
                    weights[i] = similarity[q, i] if squarings[j] >= 0 else 1.0
                for _ in range(squarings[j]):
                    for i in range(len(weights)):
                        weights[i] *= weights[i]
                total = PRIOR_ROWS
                for i in range(len(weights)):
                    total += weights[i]
            values, weighted = residuals_sq[j], PRIOR_ROWS * average[j]
            for i in range(len(weights)):
                weighted += weights[i] * values[i]
            scales[q, j] = weighted / total


def scales_at(similarity, residuals_sq, average, squarings, calibration, outputs):
    """`local_scales` at some queries, each of `outputs` with its own locality.

    residuals_sq and average are those of all outputs, squarings of all localities.
    """
    scales = local_scales(
        similarity,
        squarings[calibration.locality[outputs]],
        residuals_sq[:, outputs],
        average[outputs],
    )
    return np.maximum(scales, calibration.least_scale[outputs], out=scales)


def reach_of(variances):
    """The reach, from the variances of owned rows left out, shape (n_owned,)."""
    return float(np.quantile(variances, REACH))


def variances_at(eta, scale, reach, prior, limit):
    """Variances of queries: local scales near the rows, the prior's far away.

    eta and prior of shape (n_queries,), scale (local scale times factor) and the result
    of shape (n_queries, n_outputs), limit (the least variance where nothing is known)
    of shape (n_queries or 1, n_outputs).

    Examples
    --------
    Errors near the rows are a hundred times smaller than the spread suggests:

    >>> eta = np.array([0.01, 0.1, 1.0])
    >>> scale, limit = np.full((3, 1), 1e-4), np.ones((1, 1))
    >>> variances = variances_at(eta, scale, 0.01, np.ones(3), limit)
    >>> variances.ravel().round(6).tolist()
    [1e-06, 0.001, 1.0]
    """
    variances = scale * eta[:, None]
    far = (eta > reach).nonzero()[0]
    if len(far):
        t = np.log(eta[far] / reach) / np.log(prior[far] / reach)
        t = np.minimum(t, 1.0)[:, None]
        limit = limit[far] if len(limit) == len(scale) else limit
        line = (scale[far] * reach) ** (1.0 - t) * limit**t
        variances[far] = np.maximum(variances[far], line)
    return variances


def sides_of(residuals):
    """Signs of observed minus predicted outputs, as states hold them."""
    return np.sign(residuals).astype(np.int64)


def calibrate(
    ratios,
    residuals_sq_mean,
    output_mean,
    output_variance,
    sides=None,
    n_learned=0,
    groups=None,
):
    """Calibration from squared residuals over predicted variances.

    ratios of shape (n_localities, n_samples, n_outputs); residuals_sq_mean, on the
    kernel's scale, and moments of the outputs over all subdomains, shape (n_outputs,);
    sides, signs of the residuals, of shape (n_samples, n_outputs), None if unknown;
    n_learned hyperparameters were learned from the same rows; groups of shape
    (n_samples,), in which rows were left out, None if alone.

    Examples
    --------
    Errors twice as large as predicted call for a factor of four:

    >>> zero, one = np.zeros(1), np.ones(1)
    >>> calibrate(np.full((1, 50, 1), 4.0), one, zero, one).factor.tolist()
    [4.0]
    """
    # Up to a constant the log density, with the best factor, is the mean log of the
    # ratios minus the log of their mean: the more even, the better.
    n_rows = ratios.shape[1]
    factors = ratios.mean(axis=1)
    factors = np.where(factors > 0, factors, 1.0)
    unevenness = np.log(factors) - np.log(np.maximum(ratios, 1e-300)).mean(axis=1)
    locality = np.argmin(unevenness, axis=0)
    outputs = np.arange(len(locality))
    ratios, factor = ratios[locality, :, outputs].T, factors[locality, outputs]
    z_sq = ratios / factor
    z_sq[:, ~z_sq.any(axis=0)] = 1.0
    z = np.sqrt(z_sq)
    evidence = None if groups is None else errors.evidence_of(z, groups)
    tail, width = errors.fit_students(z_sq, evidence)
    # An output that did not vary in n rows may yet: by an n-th of its size.
    flat = output_variance <= (FLAT * np.abs(output_mean)) ** 2
    size = np.where(output_mean == 0, 1.0, np.abs(output_mean))
    output_variance = np.where(flat, (size / n_rows) ** 2, output_variance)
    least_scale = np.where(flat, output_variance, LEAST_SHARE * residuals_sq_mean)
    quantiles = errors.quantiles_of(z, n_learned, evidence)
    sides = np.zeros(z.shape) if sides is None else sides
    return Calibration(
        locality,
        least_scale,
        factor,
        quantiles,
        tail,
        width,
        output_mean,
        output_variance,
        errors.ends_of(z, sides, quantiles, evidence),
        np.ones((gaps.N_STEPS, len(factor))),
    )


def learned_inflation(n_rows, n_learned):
    """What variances lack because the same rows determined the hyperparameters.

    As for a regression of `n_learned` coefficients and a mean: n / (n - k - 1). One if
    nothing was learned.

    Examples
    --------
    >>> learned_inflation(11, 2), round(learned_inflation(1000, 2), 3)
    (1.375, 1.003)
    """
    if n_learned == 0:
        return 1.0
    return n_rows / max(n_rows - n_learned - 1, n_rows / MOST_LEARNED)


class CalibratedMachine(Machine):
    """A machine that calibrates its variances by leave-one-out residuals."""

    # What variances are multiplied with besides: see `TwinGP.variance_inflation_`.
    variance_inflation_ = 1.0
    # Hyperparameters that the rows determined.
    n_learned_ = 0

    def calibrate(self, states, groups=None):
        """One variance factor per output, and the quantiles that intervals need."""
        is_alone = groups is None or any(numbers is None for numbers in groups)
        numbers = [None] * len(states) if is_alone else groups
        # One pass, and copies: states may be many files, open a few at a time.
        parts = [
            (
                s.ratios[:, s.judged],
                s.residuals_sq_mean.copy(),
                s.excess.copy(),
                *s.output_moments,
                s.sides[s.judged],
                None if is_alone else own[s.rows_left_out][s.judged],
            )
            for s, own in zip(states, numbers)
        ]
        all_ratios, residuals_sq, excess, means, variances, sides, groups = zip(*parts)
        groups = None if is_alone else np.concatenate(groups)
        ratios, mean = np.concatenate(all_ratios, axis=1), np.mean(means, axis=0)
        variance = np.mean(variances, axis=0) + np.mean((means - mean) ** 2, axis=0)
        moments = np.mean(residuals_sq, axis=0), mean, variance
        known = np.concatenate(sides), self.n_learned_, groups
        result = calibrate(ratios, *moments, *known)
        by_learning = learned_inflation(ratios.shape[1], self.n_learned_)
        inflation = self.variance_inflation_ * by_learning
        self.calibration_ = result._replace(
            factor=result.factor * inflation,
            growth=gaps.growth_of(np.array(excess), np.array(residuals_sq)),
        )

    @property
    def errors_(self):
        """Distributed as the leave-one-out residuals are."""
        c = self.calibration_
        spread = np.sqrt(c.output_variance)
        return errors.Calibrated(c.quantiles, c.tail, c.width, spread, c.ends)
