"""Figures without global state, legible in greyscale."""

from contextlib import contextmanager

# Lines differ by dashes and markers as well as by colour.
LINES = (
    {"color": "black", "marker": "o", "linestyle": "-", "markersize": 4},
    {"color": "tab:blue", "marker": "s", "linestyle": "--", "markersize": 4},
    {"color": "tab:orange", "marker": "^", "linestyle": ":", "markersize": 5},
    {"color": "tab:green", "marker": "v", "linestyle": "-.", "markersize": 5},
)


@contextmanager
def figure(path, shape, size, **options):
    """Panels of a new figure, saved to `path` at the end of the block."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    canvas = Figure(figsize=size, layout="constrained")
    FigureCanvasAgg(canvas)
    yield canvas.subplots(*shape, **options)
    path.parent.mkdir(parents=True, exist_ok=True)
    canvas.savefig(path, dpi=100)
