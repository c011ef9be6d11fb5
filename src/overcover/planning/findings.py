"""Findings about M and p: `about_cover` for reports, `poor_choices` before a fit."""

from typing import NamedTuple

from .._markup import number, percent, size_of
from ..cover import CoverShape
from ..machines.base import memory_of_computer
from ..tuning.cost import scales_to_find

# With less overlap, predictions jump at borders more than they gain by independence.
LEAST_OVERLAP = 0.5
# Too few rows are a FEW-th of the features. With 40 features, errors of machines of 10
# rows are 17 % to 31 % larger than of 320 rows; of machines of 40 rows, 1 % to 14 %.
FEW = 4
# With at most A_FEW rows, one machine for each row is no waste.
A_FEW = 100
# Smaller and more than this, the partition takes longer than the machines.
SMALL, MANY = 100, 10_000
# The worst first.
SEVERITIES = ("problem", "warning", "note")


class Finding(NamedTuple):
    """One thing worth knowing about a model."""

    severity: str
    """"problem" (do not rely on it), "warning" (it can be better) or "note"."""
    text: str
    """The observation, what it means, what to do."""

    def __str__(self):
        return f"{self.severity}: {self.text}"

    @classmethod
    def of(cls, line) -> "Finding":
        """From a line such as "warning: ..."; without a severity it is a note."""
        severity, _, text = line.partition(": ")
        return cls(severity, text) if severity in SEVERITIES else cls("note", line)


class PoorCoverWarning(UserWarning):
    """The parameters of the cover are poor for any data; the text gives better ones."""


def poor_choices(shape: CoverShape, n_features, n_outputs, machine, in_memory=True):
    """Sentences on an M and p that serve no data well: what, why, what to do."""
    n_samples, size, overlap, _, n_subdomains = shape
    if n_subdomains == 1:
        return
    if FEW * size <= scales_to_find(n_features):
        yield (
            f"subdomain_size={size} is little beside {n_features} features: with so "
            "few rows errors are a fifth to a third larger. Give subdomain_size="
            f"{max(SMALL, 4 * n_features)} or more, or 'auto'."
        )
    owned = round((1.0 - overlap) * size, 9)  # 20 * (1 - 0.9) is below two
    if overlap > 0 and owned < 2 and n_samples > A_FEW:
        yield (
            f"With subdomain_size={size} and overlap={overlap:g} a subdomain owns "
            f"less than two rows, so {number(n_samples)} rows need "
            f"{number(n_subdomains)} machines: a machine for every query may cost "
            f"less. Give a subdomain_size of {int(10 / (1 - overlap))} or more, or a "
            "smaller overlap."
        )
    elif size < SMALL and n_subdomains > MANY:
        yield (
            f"subdomain_size={size} cuts {number(n_samples)} rows into "
            f"{number(n_subdomains)} subdomains: finding them costs more than the "
            "machines do, and each knows little. Give subdomain_size='auto', or 400."
        )
    if in_memory:
        by_row = 8 * (n_features + 3 * n_outputs)
        if getattr(machine, "keep_factors", "auto") is True:
            by_row += 4 * size
        n_copies = 1.0 / (1.0 - overlap)  # of every row, one in each of its subdomains
        needed, memory = n_samples * n_copies * by_row, memory_of_computer()
        if needed > memory:
            yield (
                "The states of all subdomains will take more than "
                f"{size_of(needed)}, and this computer has {size_of(memory)}: with "
                f"overlap={overlap:g} every row is held {n_copies:.0f} times. Fit into "
                "a store (overcover.store.fit_into), which keeps them on disk, or "
                "lower overlap."
            )


def describe_sizes(model):
    """Rows, columns, M, p and K of a fitted model, by the names of `Plan`."""
    return {
        "n_samples": int(model.cover_.n_owned.sum()),
        "n_features": len(model.length_scales_),
        "subdomain_size": max(len(members) for members in model.cover_.members),
        "overlap": model.cover_.overlap,
        "n_subdomains": model.n_subdomains_,
    }


def about_cover(model):
    """Lines about the sizes of a fitted model, and its variance."""
    sizes = describe_sizes(model)
    n_samples, n_features, size, overlap, n_subdomains = sizes.values()
    machine = type(model.machine_).__name__
    if n_subdomains == 1:
        yield (
            f"note: All {number(n_samples)} rows fit into one subdomain, so there is "
            f"no cover: this is the full model. {machine} alone does the same."
        )
    elif n_samples < 2 * size:
        yield (
            f"warning: Every subdomain holds {percent(size / n_samples, 0)} of all "
            f"rows, so {number(n_subdomains)} machines are trained on almost the same "
            f"data. {machine} alone is cheaper and as accurate; or make subdomain_size "
            f"smaller than {number(n_samples // 2)}."
        )
    if n_subdomains > 1 and overlap < LEAST_OVERLAP:
        yield (
            f"warning: Only {percent(overlap, 0)} of a subdomain's rows are "
            "borrowed: answers jump where one subdomain ends, and are poor near its "
            "border. An overlap of 0.9 is usually much more accurate."
        )
    if n_subdomains > 1 and size < 2 * scales_to_find(n_features):
        yield (
            f"warning: A subdomain holds {number(size)} rows for {number(n_features)} "
            "features: too few to learn from. Raise subdomain_size."
        )
    yield from about_variance(model)


def about_variance(model):
    if not model.machine_.has_variance:
        yield (
            f"note: {type(model.machine_).__name__} has no predictive variance: there "
            "are no standard deviations and no intervals. GP and TwinGP have them."
        )
