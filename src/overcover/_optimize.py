r"""Many small minimisations at once: batched L-BFGS.

A Twin GP predicts by minimising a smooth function of the output. For one query at a
time, this is a loop of matrix-vector products. Here all queries of a subdomain take
their steps together, so that one evaluation is a few matrix products over the active
queries, those that have not converged. Each round evaluates every active query at its
trial point. If the value there is low enough, the query takes the step and gets a new
direction
:math:`-H_q \nabla f_q` from its last few steps (two-loop recursion). If not, it tries a
shorter step in the next round.

A step with no curvature, or a negative one, shows that the minimum lies farther on, but
not how far. The next step then has the largest allowed length. Otherwise a query would
take very many steps on a plateau between two valleys, where the gradient is small.

Variables should be scaled so that steps and gradients are of order one.
"""

from typing import NamedTuple

import numpy as np

from ._compiled import compiled_loosely

# Number of past steps that determine a direction.
MEMORY = 8
# No step is longer, so that a query stays in its valley.
LONGEST_STEP = 1.0
# A step must reach this share of the descent that the slope predicts.
SUFFICIENT = 1e-4
# Steps with less curvature (as a cosine) are not stored.
LEAST_CURVATURE = 1e-8
# Rounding of the function's value, relative to it.
NOISE = 1e-10
# A smaller predicted descent is not worth another evaluation.
ROUNDING = np.finfo(float).eps
# After this many steps, a problem converges slowly.
FEW_MOVES = 4
# A start with a larger gradient may lie on a plateau, whatever the tolerance, so it
# takes at least one step.
FLAT = 1e-7

ACTIVE, CONVERGED, STALLED = 0, 1, 2


class Minima(NamedTuple):
    """The results of a batch of minimisations, each of shape (n_problems, ...)."""

    points: np.ndarray
    values: np.ndarray
    n_evaluations: np.ndarray
    converged: np.ndarray  # False if rounding or the evaluations ended the descent


class _Progress(NamedTuple):
    """The state of every problem; arrays that change in place."""

    points: np.ndarray
    values: np.ndarray
    gradients: np.ndarray
    directions: np.ndarray
    trials: np.ndarray
    steps: np.ndarray
    status: np.ndarray
    moves: np.ndarray  # a ring buffer of steps (n_problems, MEMORY, n_variables)
    changes: np.ndarray  # of the gradient along these steps, same shape
    inverse_curvatures: np.ndarray
    n_moves: np.ndarray


def minimize_batch(
    objective, starts, *, tolerance=1e-7, settled=0.0, max_evaluations=200
) -> Minima:
    """Minimise many functions of a few variables, from `starts` (n_problems, n_vars).

    ``objective(points, problems)`` returns values (n,) and gradients (n, n_vars) at
    points (n, n_vars) of the problems with these indices. A problem has converged when
    no entry of its gradient exceeds the `tolerance`, unless its last step showed a
    plateau, or when its next step moves no variable farther than `settled`. It then
    takes a last step without another evaluation. Memory: about ``2 * MEMORY + 5`` times
    that of `starts`, and that of the objective.

    >>> centers = np.array([[1.0, 2.0], [-3.0, 0.5]])
    >>> def bowls(points, problems):
    ...     offset = points - centers[problems]
    ...     return np.sum(offset**2, axis=1), 2.0 * offset
    >>> minimize_batch(bowls, np.zeros((2, 2))).points.round(6).tolist()
    [[1.0, 2.0], [-3.0, 0.5]]
    """
    n_problems, n_variables = starts.shape
    values, gradients = objective(starts, np.arange(n_problems))
    buffer = (n_problems, MEMORY, n_variables)
    progress = _Progress(
        points=starts.astype(np.float64),
        values=values.copy(),
        gradients=gradients.copy(),
        directions=np.empty_like(gradients),
        trials=np.empty_like(gradients),
        steps=np.empty(n_problems),
        status=np.full(n_problems, ACTIVE),
        moves=np.empty(buffer),
        changes=np.empty(buffer),
        inverse_curvatures=np.empty(buffer[:2]),
        n_moves=np.zeros(n_problems, dtype=np.int64),
    )
    n_evaluations = np.ones(n_problems, dtype=np.int64)
    settled = np.full(n_variables, settled, dtype=np.float64)
    _aim_from_starts(progress, tolerance, settled)
    for _ in range(max_evaluations - 1):
        active = np.flatnonzero(progress.status == ACTIVE)
        if not len(active):
            break
        values, gradients = objective(progress.trials[active], active)
        n_evaluations[active] += 1
        _advance(progress, active, values, gradients, tolerance, settled)
    converged = progress.status == CONVERGED
    return Minima(progress.points, progress.values, n_evaluations, converged)


@compiled_loosely
def _aim_from_starts(p, tolerance, settled):
    """First directions: minus the gradient."""
    for q in range(len(p.points)):
        if not np.isfinite(p.values[q]):
            p.status[q] = STALLED
        else:
            _aim(p, q, min(tolerance, FLAT), settled, True)


@compiled_loosely
def _advance(p, active, values, gradients, tolerance, settled):
    """Take or shorten the step of every active problem."""
    for i in range(len(active)):
        q = active[i]
        slope = np.dot(p.gradients[q], p.directions[q])
        step = p.steps[q]
        least = p.values[q] + SUFFICIENT * step * slope
        noise = NOISE * (1.0 + abs(p.values[q]))
        # If rounding hides the descent, the gradient still shows it.
        flatter = np.max(np.abs(gradients[i])) < np.max(np.abs(p.gradients[q]))
        blind = -step * slope <= noise
        if values[i] <= least or (
            blind and flatter and values[i] <= p.values[q] + noise
        ):
            is_convex = _remember(p, q, step, gradients[i])
            p.points[q] = p.trials[q]
            p.values[q] = values[i]
            p.gradients[q] = gradients[i]
            _aim(p, q, tolerance, settled, is_convex)
        else:
            _shorten(p, q, slope, values[i])


@compiled_loosely
def _remember(p, q, step, gradient):
    """Store a step and its change of the gradient; False if it shows no curvature."""
    slot = p.n_moves[q] % MEMORY
    move, change = p.moves[q, slot], p.changes[q, slot]
    product = move_sq = change_sq = 0.0
    for f in range(len(gradient)):
        m, c = step * p.directions[q, f], gradient[f] - p.gradients[q, f]
        move[f], change[f] = m, c
        product += m * c
        move_sq += m * m
        change_sq += c * c
    if product > LEAST_CURVATURE * np.sqrt(move_sq * change_sq):
        p.inverse_curvatures[q, slot] = 1.0 / product
        p.n_moves[q] += 1
        return True
    return False


@compiled_loosely
def _aim(p, q, tolerance, settled, is_convex):
    """A new direction and trial point; or the last step, if the gradient vanishes.

    `is_convex` tells whether the previous step showed curvature.
    """
    _point_downhill(p, q)
    steepest = np.max(np.abs(p.gradients[q]))
    noise = NOISE * (1.0 + abs(p.values[q]))
    # Rounding may hide curvature near the minimum.
    is_plateau = not is_convex and LONGEST_STEP * steepest > noise
    # Without a stored step, nothing is known of the length of the next. Where progress
    # was slow, many such steps may be left.
    n_moves = p.n_moves[q]
    reach = min(1.0, FEW_MOVES / max(1, n_moves)) * settled
    is_settled = n_moves > 0 and np.all(np.abs(p.directions[q]) <= reach)
    if (steepest <= tolerance or is_settled) and not is_plateau:
        # This step costs no evaluation, and reduces the error by about ten.
        p.points[q] += p.directions[q]
        p.status[q] = CONVERGED
    else:
        _start_step(p, q, LONGEST_STEP if is_plateau else 0.0)


@compiled_loosely
def _point_downhill(p, q):
    """The two-loop recursion: minus the gradient times the inverse curvature."""
    gradient, direction = p.gradients[q], p.directions[q]
    n_kept = min(p.n_moves[q], MEMORY)
    shares = np.empty(MEMORY)
    direction[:] = -gradient
    for back in range(1, n_kept + 1):
        slot = (p.n_moves[q] - back) % MEMORY
        shares[slot] = p.inverse_curvatures[q, slot] * np.dot(
            p.moves[q, slot], direction
        )
        direction -= shares[slot] * p.changes[q, slot]
    if n_kept:
        last = (p.n_moves[q] - 1) % MEMORY
        change = p.changes[q, last]
        direction /= p.inverse_curvatures[q, last] * np.dot(change, change)
    for back in range(n_kept, 0, -1):
        slot = (p.n_moves[q] - back) % MEMORY
        share = p.inverse_curvatures[q, slot] * np.dot(p.changes[q, slot], direction)
        direction += (shares[slot] - share) * p.moves[q, slot]
    if np.any(gradient) and not np.dot(direction, gradient) < 0:
        # Rounding has corrupted the stored steps: start again along the gradient.
        p.n_moves[q] = 0
        direction[:] = -gradient


@compiled_loosely
def _start_step(p, q, least_length):
    """The trial point of a new direction, at least `least_length` away."""
    direction = p.directions[q]
    length = np.sqrt(np.dot(direction, direction))
    p.steps[q] = 1.0
    if length > 0:
        p.steps[q] = min(max(1.0, least_length / length), LONGEST_STEP / length)
    p.trials[q] = p.points[q] + p.steps[q] * direction


@compiled_loosely
def _shorten(p, q, slope, value):
    """A shorter step: to the minimum of the parabola through values and slope."""
    step = p.steps[q]
    shorter = 0.1 * step
    if np.isfinite(value):
        bend = value - p.values[q] - slope * step
        if bend > 0:
            shorter = -0.5 * slope * step * step / bend
        shorter = min(max(shorter, 0.1 * step), 0.5 * step)
    descent = -slope * shorter
    if descent <= ROUNDING * (1.0 + abs(p.values[q])):
        _settle(p, q)
    else:
        p.steps[q] = shorter
        p.trials[q] = p.points[q] + shorter * p.directions[q]


@compiled_loosely
def _settle(p, q):
    """Rounding hides further descent: try the gradient's direction once, then stop."""
    if p.n_moves[q] == 0:
        p.status[q] = STALLED
        return
    p.n_moves[q] = 0
    p.directions[q] = -p.gradients[q]
    _start_step(p, q, 0.0)
