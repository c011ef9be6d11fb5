"""Shared by all pictures: axes to draw on, and looks that suit a grey printer."""

import numpy as np

from .tables import require

# Ink that stands out against every lightness of `light_map`.
INK, ACCENT, FAINT = "#111111", "#b5121b", "#8a8a8a"


def axes_for(ax, caller, **options):
    """`ax`, or axes of a new figure of pyplot for the display `caller`."""
    if ax is None:
        pyplot = require("matplotlib.pyplot", "plot", caller)
        ax = pyplot.subplots(**options)[1]
    return ax


def plain(text):
    """A text that matplotlib shows as it is: dollars would be read as mathematics."""
    return text.replace("$", r"\$")


def thinned(rows, most):
    """At most so many of the rows, evenly spaced."""
    return rows[:: max(1, -(-len(rows) // most))]


def light_map():
    """The lighter two thirds of viridis: lightness in order, none of it near black."""
    import matplotlib as mpl

    colors = mpl.colormaps["viridis"](np.linspace(0.35, 1.0, 256))
    return mpl.colors.ListedColormap(colors, name="light")


def principal_points(Z):
    """Rows in the plane in which they spread most, and its directions' shares."""
    sample = thinned(Z, 5000)
    origin = sample.mean(axis=0)
    values, vectors = np.linalg.eigh((sample - origin).T @ (sample - origin))
    directions = vectors[:, ::-1][:, :2]
    largest = np.argmax(np.abs(directions), axis=0)
    directions = directions * np.sign(directions[largest, np.arange(len(largest))])
    values = np.maximum(values[::-1], 0.0)
    shares = values[:2] / max(values.sum(), np.finfo(float).tiny)
    return (Z - origin) @ directions, shares
