r"""Features of silhouettes: bags of shape contexts.

    skeleton -> motion -> camera -> silhouette -> [features]

Points are sampled along the border. The shape context of a point counts where the
others lie: 12 directions times 5 rings, equal in the logarithm of the distance over the
mean distance. Contexts vote for the words c of a codebook, learned from training
silhouettes by k-means, with weights :math:`e^{-|s - c|^2 / 2 \sigma^2}` that add up to
one for each point; the mean of the votes is the feature. As distances are relative to
their mean, neither place nor scale matters.
"""

import numpy as np
from sklearn.cluster import KMeans

from ..._parallel import one_thread_per_worker
from ._silhouette import compiled, on_border

N_POINTS = 100
"""Points sampled along a border."""

N_RINGS, N_DIRECTIONS = 5, 12
NEAREST_RING, FARTHEST_RING = 0.125, 2.0
"""Where the rings begin and end, in mean distances."""

N_WORDS = 100
MOST_CONTEXTS = 10_000
"""Contexts at most from which a codebook is learned."""


@compiled
def _border_points(image, points):
    """Evenly chosen border pixels in reading order; how many there are."""
    size = image.shape[0]
    border = np.empty((size * size, 2))
    n_border = 0
    for y in range(size):
        for x in range(size):
            if on_border(image, y, x):
                border[n_border, 0], border[n_border, 1] = x, y
                n_border += 1
    n_points = min(n_border, len(points))
    for i in range(n_points):
        points[i] = border[i * n_border // n_points]
    return n_points


@compiled
def shape_contexts(image):
    """Shape contexts of points along the border, shape (n_points, 60).

    Each context sums to one, or to less where points lie beyond the last ring.
    """
    points = np.empty((N_POINTS, 2))
    n_points = _border_points(image, points)
    contexts = np.zeros((n_points, N_RINGS * N_DIRECTIONS))
    if n_points < 2:
        return contexts
    total = 0.0
    for i in range(n_points):
        for j in range(i):
            dx, dy = points[j, 0] - points[i, 0], points[j, 1] - points[i, 1]
            total += np.sqrt(dx * dx + dy * dy)
    mean = 2.0 * total / (n_points * (n_points - 1))
    per_ring = N_RINGS / np.log(FARTHEST_RING / NEAREST_RING)
    for i in range(n_points):
        for j in range(n_points):
            if i == j:
                continue
            dx, dy = points[j, 0] - points[i, 0], points[j, 1] - points[i, 1]
            distance = np.sqrt(dx * dx + dy * dy) / mean
            if distance >= FARTHEST_RING:
                continue
            ring = int(max(0.0, np.log(distance / NEAREST_RING) * per_ring))
            ring = min(ring, N_RINGS - 1)
            turn = np.arctan2(dy, dx) / (2 * np.pi) + 0.5
            direction = int(turn * N_DIRECTIONS) % N_DIRECTIONS
            contexts[i, ring * N_DIRECTIONS + direction] += 1.0 / (n_points - 1)
    return contexts


def learn_codebook(images, random_state):
    """Words, shape (100, 60): k-means of the shape contexts of some silhouettes.

    Also returns sigma of the votes: the distance of a typical context to its word.
    """
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


@compiled
def bag_of_shape_contexts(images, words, width):
    """Mean votes of the shape contexts of every image, shape (n_images, n_words).

    Zeros for an empty image.
    """
    features = np.zeros((len(images), len(words)), dtype=np.float32)
    words_t = np.ascontiguousarray(words.T)
    votes, bag = np.empty(len(words)), np.empty(len(words))
    for i in range(len(images)):
        contexts = shape_contexts(images[i])
        bag[:] = 0.0
        for p in range(len(contexts)):
            votes[:] = 0.0
            for k in range(len(words_t)):
                # Words innermost: they fill the vector lanes.
                for w in range(len(votes)):
                    votes[w] += (contexts[p, k] - words_t[k, w]) ** 2
            nearest = votes.min()
            votes[:] = np.exp(-0.5 * (votes - nearest) / (width * width))
            bag += votes / votes.sum()
        if len(contexts) > 0:
            features[i] = bag / len(contexts)
    return features
