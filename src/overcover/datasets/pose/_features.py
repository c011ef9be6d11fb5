r"""Features of silhouettes: histograms of oriented gradients.

    skeleton -> motion -> camera -> silhouette -> [features]

The image is smoothed, :math:`g = \nabla I` by central differences; every pixel near the
bounding box of what is not zero adds :math:`|g|` to the two orientations (of 9 in 180
degrees) next to that of g, in its cell of the bounding box; the whole is scaled to
length one. Cells move and stretch with the bounding box, so neither place nor
brightness matters.
"""

import numpy as np

from ._silhouette import compiled

N_ORIENTATIONS = 9


@compiled
def bounding_box(image):
    """First and past-last row and column that hold anything; zeros where none does."""
    top, bottom, left, right = image.shape[0], 0, image.shape[1], 0
    for y in range(image.shape[0]):
        for x in range(image.shape[1]):
            if image[y, x] > 0:
                top, bottom = min(top, y), max(bottom, y + 1)
                left, right = min(left, x), max(right, x + 1)
    if bottom == 0:
        return 0, 0, 0, 0
    return top, bottom, left, right


@compiled
def _smooth(image, out, between):
    """Binomial weights (1 4 6 4 1) / 16 along both axes; outside is zero."""
    height, width = image.shape
    weights = (0.375, 0.25, 0.0625)
    for y in range(height):
        for x in range(width):
            total = weights[0] * image[y, x]
            for k in range(1, 3):
                if x >= k:
                    total += weights[k] * image[y, x - k]
                if x + k < width:
                    total += weights[k] * image[y, x + k]
            between[y, x] = total
    for y in range(height):
        for x in range(width):
            total = weights[0] * between[y, x]
            for k in range(1, 3):
                if y >= k:
                    total += weights[k] * between[y - k, x]
                if y + k < height:
                    total += weights[k] * between[y + k, x]
            out[y, x] = total


@compiled
def hog(images, n_rows, n_columns):
    """Histograms of oriented gradients over the cells of the bounding box.

    Images have shape (n_images, height, width), features (n_images, n_rows * n_columns
    * 9); zeros for an empty image.
    """
    n_images, height, width = images.shape
    features = np.zeros((n_images, n_rows * n_columns * N_ORIENTATIONS), np.float32)
    smooth, between = np.empty((height, width)), np.empty((height, width))
    histogram = np.empty((n_rows, n_columns, N_ORIENTATIONS))
    for i in range(n_images):
        top, bottom, left, right = bounding_box(images[i])
        if bottom == 0:
            continue
        _smooth(images[i], smooth, between)
        histogram[:] = 0.0
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
        flat = histogram.ravel()
        features[i] = flat / np.sqrt(np.sum(flat * flat))
    return features
