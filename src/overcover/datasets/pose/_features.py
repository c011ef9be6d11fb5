r"""Features of silhouettes: histograms of oriented gradients, bags of shape contexts.

*Histograms.* Every pixel near the bounding box adds the length of the smoothed gradient
to the two of 9 orientations next to its own, in its cell of the box; length one.

*Bags.* The shape context of a point of the border counts where the others lie, in 12
directions times 5 rings. Contexts s vote for the words c of a codebook by
:math:`e^{-|s - c|^2 / 2 \sigma^2}`; the feature is the mean of the votes.

Neither depends on place or brightness; the features of an empty image are zero.
"""

import numpy as np
from scipy.ndimage import binary_erosion
from scipy.spatial.distance import cdist
from scipy.special import softmax
from sklearn.cluster import KMeans

from ..._compiled import compiled
from ..._parallel import one_thread_per_worker

N_ORIENTATIONS = 9
N_POINTS = 100  # sampled along a border
N_RINGS, N_DIRECTIONS = 5, 12
NEAREST_RING, FARTHEST_RING = 0.125, 2.0  # begin and end, in mean distances
N_WORDS = 100
MOST_CONTEXTS = 10_000  # from which a codebook is learned


@compiled
def _smooth_rows(image):
    """Weights (1 4 6 4 1) / 16 along rows, outside is zero; transposes the image."""
    height, width = image.shape
    smooth, row = np.empty((width, height)), np.zeros(width + 4)
    for y in range(height):
        for x in range(width):
            row[x + 2] = image[y, x]
        for x in range(width):
            near, far = row[x + 1] + row[x + 3], row[x] + row[x + 4]
            smooth[x, y] = 0.375 * row[x + 2] + 0.25 * near + 0.0625 * far
    return smooth


@compiled
def hog(images, n_rows, n_columns):
    """Histograms of images (n_images, height, width), one for each cell in a row."""
    n_images, height, width = images.shape
    features = np.zeros((n_images, n_rows * n_columns * N_ORIENTATIONS), np.float32)
    for i in range(n_images):
        top, bottom, left, right = height, 0, width, 0
        for y in range(height):
            for x in range(width):
                if images[i, y, x] > 0:
                    top, bottom = min(top, y), max(bottom, y + 1)
                    left, right = min(left, x), max(right, x + 1)
        if bottom == 0:
            continue
        smooth = _smooth_rows(_smooth_rows(images[i]))
        histogram = np.zeros((n_rows, n_columns, N_ORIENTATIONS))
        # Smoothing spreads the border by two pixels, differences by one.
        for y in range(max(1, top - 3), min(height - 1, bottom + 3)):
            row = (y - top) * n_rows // (bottom - top)
            row = min(n_rows - 1, max(0, row))
            for x in range(max(1, left - 3), min(width - 1, right + 3)):
                gx = smooth[y, x + 1] - smooth[y, x - 1]
                gy = smooth[y + 1, x] - smooth[y - 1, x]
                if gx == 0.0 and gy == 0.0:
                    continue
                column = (x - left) * n_columns // (right - left)
                column = min(n_columns - 1, max(0, column))
                place = np.arctan2(gy, gx) / np.pi * N_ORIENTATIONS - 0.5
                below = int(np.floor(place))
                share = place - below
                size = np.sqrt(gx * gx + gy * gy)
                cell = histogram[row, column]
                cell[below % N_ORIENTATIONS] += (1.0 - share) * size
                cell[(below + 1) % N_ORIENTATIONS] += share * size
        flat, norm_sq = histogram.ravel(), 0.0
        for size in flat:
            norm_sq += size * size
        for k in range(len(flat)):
            features[i, k] = flat[k] / np.sqrt(norm_sq)
    return features


def shape_contexts(image):
    """Shares of the other points by ring and direction, shape (n_points, 60)."""
    inside = image > 0
    border = np.argwhere(inside & ~binary_erosion(inside))
    n_points = min(len(border), N_POINTS)
    if n_points < 2:
        return np.zeros((n_points, N_RINGS * N_DIRECTIONS))
    points = border[np.arange(n_points) * len(border) // n_points].astype(float)
    dy, dx = np.moveaxis(points - points[:, None], -1, 0)
    distances = np.sqrt(dx * dx + dy * dy)
    distances /= distances.sum() / (n_points * (n_points - 1))
    i, j = np.nonzero((distances > 0) & (distances < FARTHEST_RING))
    per_ring = N_RINGS / np.log(FARTHEST_RING / NEAREST_RING)
    rings = np.log(distances[i, j] / NEAREST_RING) * per_ring
    rings = np.clip(rings, 0, N_RINGS - 1).astype(int)
    turns = np.arctan2(dy[i, j], dx[i, j]) / (2 * np.pi) + 0.5
    directions = (turns * N_DIRECTIONS).astype(int) % N_DIRECTIONS
    shape = n_points, N_RINGS, N_DIRECTIONS
    places = np.ravel_multi_index((i, rings, directions), shape)
    shares = np.full(len(places), 1.0 / (n_points - 1))
    return np.bincount(places, shares, np.prod(shape)).reshape(n_points, -1)


def learn_codebook(images, random_state):
    """Words of shape (100, 60), and sigma: the rms distance of contexts to words."""
    contexts = np.concatenate([shape_contexts(image) for image in images])
    if len(contexts) < N_WORDS:
        raise ValueError(
            f"The training silhouettes have {len(contexts)} border points, too few for "
            f"{N_WORDS} words. Raise n_frames, or lower occlusion."
        )
    stride = -(-len(contexts) // MOST_CONTEXTS)
    contexts = contexts[::stride]
    with one_thread_per_worker():
        means = KMeans(N_WORDS, n_init=1, max_iter=30, random_state=random_state)
        means.fit(contexts)
    return means.cluster_centers_, float(np.sqrt(means.inertia_ / len(contexts)))


def bag_of_shape_contexts(images, words, width):
    """Mean votes of the shape contexts of every image, shape (n_images, n_words)."""
    features = np.zeros((len(images), len(words)), dtype=np.float32)
    for feature, image in zip(features, images):
        contexts = shape_contexts(image)
        if len(contexts):
            votes = cdist(contexts, words, "sqeuclidean") / (-2.0 * width**2)
            feature[:] = softmax(votes, axis=1).mean(axis=0)
    return features
