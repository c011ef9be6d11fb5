"""Advice about models after `partial_fit`, as lines such as "note: ..."."""

from .._markup import number
from ..tuning.cost import TuningCost

# With so many times the rows, hyperparameters are worth another look.
MANY_MORE = 2.0


def about_growth(model):
    """Hyperparameters that were learned from a part of the rows."""
    n_rows, n_tuned = model.cover_.n_owned.sum(), getattr(model, "n_samples_tuned_", 0)
    shape = n_rows, len(model.length_scales_), model.n_outputs_
    is_tuned = model.machine_.tuning_cost(*shape) != TuningCost()
    if is_tuned and n_tuned and n_rows >= MANY_MORE * n_tuned:
        yield (
            f"note: The model has {number(n_rows)} rows, and its hyperparameters were "
            f"learned from {number(n_tuned)} rows. More rows may improve them: call "
            "model.retune(), which takes as long as a fit."
        )
