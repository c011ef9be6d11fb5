"""What a fit decides before its stages: the scales of inputs and outputs, and sizes."""

from . import inputs
from ._notes import warn
from .consult import check_consulted, check_rule
from .cover import CoverShape
from .fitting import Recipe
from .machines import GP, make_machine
from .planning.choice import plan_within
from .planning.findings import PoorCoverWarning, poor_choices
from .routing import router_for
from .targets import AUTO, Unchanged, fit_target

# The machine by which "auto" chooses scales of outputs and inputs: one kernel, and
# hyperparameters that all outputs share, are enough to compare scales.
JUDGE = {"kernel": "matern32", "per_output": False, "robust": False}


def choose_scales(model, data, groups):
    """Scales of inputs, None for X as it is, and of outputs; sets both attributes.

    "auto" chooses for machines that learn their metric.
    """
    is_free = make_machine(model.machine).learns_metric
    scales, judge = None, GP(**JUDGE)
    if model.input_scale == inputs.AUTO and is_free:
        scales = inputs.choose(data, groups, judge)
    wanted = "identity" if model.target == AUTO and not is_free else model.target
    judged = data._replace(X=inputs.on_scale(scales, data.X))
    target = fit_target(wanted, judged, groups, judge)
    if scales is not None:
        model.input_scales_ = scales
    if not isinstance(target, Unchanged):
        model.target_ = target
    return scales, target


def recipe_of(model, data, in_memory, budget, choice) -> Recipe:
    """What the stages need besides the rows; refuses wrong parameters."""
    n_outputs = data.Y.shape[1]
    sizes = *data.X.shape, n_outputs
    shape = CoverShape.of(model, len(data.X), n_outputs)
    if budget is not None:
        plan = plan_within(model, sizes, budget)
        if not plan.fits:
            warn(" ".join(plan.verdict()), PoorCoverWarning)
        choice = plan.subdomain_size, plan.overlap
    if choice is not None:
        M, p = model.budget_choice_ = choice
        shape = CoverShape.at(len(data.X), M, p, model.spread)
    if isinstance(model.partition, str):  # a clusterer may make more, or fewer
        check_consulted(model.n_consulted, shape.n_subdomains)
    for text in poor_choices(shape, sizes[1], n_outputs, model.machine, in_memory):
        warn(text, PoorCoverWarning)
    machine = make_machine(model.machine)
    check_rule(model.combine, machine)
    return Recipe(
        machine=model.machine,
        shape=shape,
        partition=model.partition,
        router=router_for(model.router, machine),
        random_state=model.random_state,
        n_jobs=model.n_jobs,
    )
