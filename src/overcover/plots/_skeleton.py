"""Skeletons in space: true poses and predicted ones."""

import numpy as np

from .._drawing import ACCENT, INK, axes_for
from .._validation import check_choice, check_count
from ..metrics import as_joints, check_same_shape, joint_distances

# How the axes of the data are drawn, the last one upwards.
UPWARDS = {"x": (1, 2, 0), "y": (2, 0, 1), "z": (0, 1, 2)}


class SkeletonDisplay:
    """A few frames side by side, true skeletons and predicted ones.

    Parameters
    ----------
    true : ndarray of shape (n_frames, n_joints, 3)
    predicted : ndarray of shape (n_frames, n_joints, 3) or None
    bones : array-like of int of shape (n_bones, 2)
        Pairs of joints.
    frames : sequence
        Names of the frames: row numbers, for example.
    up : {"z", "y", "x"}, default="z"
        The axis of the data that points upwards.

    Attributes
    ----------
    errors : ndarray of shape (n_frames,) or None
        Mean distance between true and predicted joints.
    true_, predicted_, ax_, figure_
        Of matplotlib, after `plot`: the bones of each frame, and its axes.

    Examples
    --------
    >>> import numpy as np
    >>> from overcover.plots import SkeletonDisplay
    >>> pose = np.array([[[0, 0, 0], [0, 0, 1], [1, 0, 1.0]]])
    >>> display = SkeletonDisplay(pose, pose + [0, 0, 0.1], [(0, 1), (1, 2)], [0])
    >>> display.errors.round(3).tolist()
    [0.1]
    """

    def __init__(self, true, predicted, bones, frames, up="z"):
        check_choice("up", up, tuple(UPWARDS))
        self.true = true
        self.predicted = predicted
        self.bones = np.asarray(bones, dtype=np.intp).reshape(-1, 2)
        self.frames = frames
        self.up = up
        n_joints = true.shape[1]
        if not np.all((self.bones >= 0) & (self.bones < n_joints)):
            raise ValueError(
                f"bones name joints {self.bones.min()} to {self.bones.max()}, but "
                f"there are {n_joints}, counted from 0."
            )
        self.errors = None
        if predicted is not None:
            self.errors = joint_distances(true, predicted).mean(axis=1)

    @classmethod
    def from_predictions(
        cls, Y, Y_predicted=None, *, bones, frames=None, n_frames=4, up="z", ax=None
    ):
        """Draw some of many poses.

        Parameters
        ----------
        Y : array-like of shape (n_rows, n_joints, 3) or (n_rows, 3 * n_joints)
            Joint by joint, x y z each.
        Y_predicted : array-like of Y's shape, default=None
        bones, up, ax
            As for the class and in `plot`.
        frames : sequence of int, default=None
            Rows to draw; None takes `n_frames` of them, evenly spaced.
        n_frames : int, default=4
        """
        Y = as_joints(Y, "Y")
        check_count("n_frames", n_frames)
        if frames is None:
            frames = np.linspace(0, len(Y) - 1, min(n_frames, len(Y))).round()
        frames = np.asarray(frames, dtype=np.intp)
        predicted = None
        if Y_predicted is not None:
            predicted = as_joints(Y_predicted, "Y_predicted")
            check_same_shape(Y=Y, Y_predicted=predicted)
            predicted = predicted[frames]
        return cls(Y[frames], predicted, bones, frames, up).plot(ax=ax)

    def plot(self, ax=None, *, elevation=12, azimuth=-65):
        """Draw the frames.

        Parameters
        ----------
        ax : sequence of matplotlib Axes3D, default=None
            One for every frame; None makes a new figure.
        elevation, azimuth : float
            Where to look from, in degrees.
        """
        n_frames = len(self.true)
        # Axes in space are square and a pose is tall: let their margins overlap.
        margins = {"left": 0.0, "bottom": 0.06, "right": 1.0, "top": 0.88}
        ax = axes_for(
            ax,
            "SkeletonDisplay",
            ncols=n_frames,
            subplot_kw={"projection": "3d"},
            gridspec_kw={**margins, "wspace": -0.2},
            figsize=(2.5 * n_frames + 0.8, 4.2),
        )
        self.ax_ = np.asarray(ax, dtype=object).ravel()
        if len(self.ax_) != n_frames:
            raise ValueError(
                f"ax holds {len(self.ax_)} axes for {n_frames} frames: give as many."
            )
        self.figure_ = self.ax_[0].figure
        solid = {"color": INK, "ls": "-", "marker": "o", "lw": 2.2}
        dashed = {"color": ACCENT, "ls": (0, (2.2, 1.2)), "marker": "s", "lw": 1.5}
        self.true_ = self._draw(self.true, "true", solid)
        self.predicted_ = self._draw(self.predicted, "predicted", dashed)
        for i, axes in enumerate(self.ax_):
            self._frame(axes, i)
            axes.view_init(elev=elevation, azim=azimuth)
        handles = [lines[0] for lines in (self.true_[0], *self.predicted_[:1]) if lines]
        if handles:
            look = {"ncols": 2, "frameon": False}
            self.figure_.legend(handles=handles, loc="lower center", **look)
        return self

    def _draw(self, poses, name, look):
        """Lines of the bones of each frame, with a label for the legend."""
        look = {"ms": 3.5, "label": name, **look}
        return [
            [
                axes.plot(*pose[bone][:, UPWARDS[self.up]].T, **look)[0]
                for bone in self.bones
            ]
            for axes, pose in zip(self.ax_, () if poses is None else poses)
        ]

    def _frame(self, axes, i):
        """One box for true and predicted, as wide as high as deep; no clutter."""
        poses = [part[i] for part in (self.true, self.predicted) if part is not None]
        joints = np.concatenate(poses)[:, UPWARDS[self.up]]
        low, high = joints.min(axis=0), joints.max(axis=0)
        # A pose is mostly tall: the box follows it, so that it fills its place.
        extent = np.maximum(high - low, 0.25 * (high - low).max() + 1e-12)
        middle = 0.5 * (low + high)
        for axis, center, width in zip("xyz", middle, extent):
            axes.set(**{f"{axis}lim": (center - 0.55 * width, center + 0.55 * width)})
            getattr(axes, f"{axis}axis").set_ticklabels([])
            getattr(axes, f"{axis}axis").set_tick_params(length=0)
        axes.set_box_aspect(extent, zoom=1.05)
        title = f"row {self.frames[i]}"
        if self.errors is not None:
            title += f"\nmean error {self.errors[i]:.3g}"
        axes.set_title(title, y=1.05)
        axes.patch.set_visible(False)
