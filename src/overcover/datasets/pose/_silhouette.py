r"""Silhouettes: tapered capsules drawn into small images, then damaged.

A limb between points a and b covers every pixel p with :math:`|p - a - s (b - a)| \le
r_a + s (r_b - r_a)`, s its place along the limb in [0, 1]. Each image has its own seed.
"""

import numpy as np

from ..._compiled import compiled
from ._skeleton import P

SIZE, MARGIN = 96, 8  # pixels of an image's side, and left free around the person

# Limbs: two points and their radii, in mm per metre of height. "skull" is a point
# between neck and head, so that head and neck have different widths.
_TRUNK = "pelvis chest 68 72, chest neck 74 44, neck head 33 33, skull head 48 43"
_SIDE = """neck @_shoulder 36 33, @_hip @_shoulder 48 36, @_shoulder @_elbow 31 24,
    @_elbow @_wrist 25 16, @_wrist @_hand 18 14, @_hip @_knee 49 32,
    @_knee @_ankle 34 20, @_ankle @_toe 23 16"""
_LIMBS = [
    limb.split()
    for text in (_TRUNK, _SIDE.replace("@", "left"), _SIDE.replace("@", "right"))
    for limb in text.split(",")
]
_POINTS = {**P, "skull": len(P)}
_ENDS = np.array([[_POINTS[a], _POINTS[b]] for a, b, *_ in _LIMBS])
_RADII = np.array([limb[2:] for limb in _LIMBS], dtype=float)


def limbs_seen(joints, camera, height, girth):
    """Right, down, radius of limbs' ends in an image: (n_frames, n_limbs, 2, 3)."""
    joints = joints.copy()
    neck, head = joints[:, P["neck"]], joints[:, P["head"]].copy()
    skull = neck + 0.56 * (head - neck)
    # The highest point of the head is its skin, so its middle lies lower.
    joints[:, P["head"]] = neck + 0.75 * (head - neck)
    pixels, depth = camera.project(np.concatenate([joints, skull[:, None]], axis=1))
    radii = _RADII * (height / 1000 * girth) * camera.focal / depth[:, _ENDS]
    return np.concatenate([pixels[:, _ENDS], radii[..., None]], axis=-1)


def fit_to_image(limbs):
    """Limbs in pixels from the upper left corner: the person fills the image."""
    spots, radii = limbs[..., :2], limbs[..., 2:]
    low = (spots - radii).min(axis=(1, 2))
    high = (spots + radii).max(axis=(1, 2))
    scale = (SIZE - 2 * MARGIN) / (high - low).max(axis=1)
    fitted = limbs * scale[:, None, None, None]
    middle = (scale[:, None] * (low + high) / 2)[:, None, None]
    fitted[..., :2] += SIZE / 2 - middle
    # In one order of memory, so that one version of the drawing is compiled.
    return np.ascontiguousarray(fitted)


@compiled
def _draw_limb(image, a, b):
    """Set the pixels whose middles a tapered capsule covers."""
    size = image.shape[0]
    top = max(0, int(np.floor(min(a[1] - a[2], b[1] - b[2]))))
    bottom = min(size, int(np.ceil(max(a[1] + a[2], b[1] + b[2]))) + 1)
    left = max(0, int(np.floor(min(a[0] - a[2], b[0] - b[2]))))
    right = min(size, int(np.ceil(max(a[0] + a[2], b[0] + b[2]))) + 1)
    du, dv = b[0] - a[0], b[1] - a[1]
    length_sq = max(du * du + dv * dv, 1e-12)
    for y in range(top, bottom):
        for x in range(left, right):
            u, v = x + 0.5 - a[0], y + 0.5 - a[1]
            s = min(1.0, max(0.0, (u * du + v * dv) / length_sq))
            radius = a[2] + s * (b[2] - a[2])
            if (u - s * du) ** 2 + (v - s * dv) ** 2 <= radius * radius:
                image[y, x] = 1


@compiled
def _next(state):
    """A uniform number in [0, 1) from a splitmix64 generator of one word."""
    state[0] += np.uint64(0x9E3779B97F4A7C15)
    z = state[0]
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    z = z ^ (z >> np.uint64(31))
    return (z >> np.uint64(11)) * (1.0 / 9007199254740992.0)


@compiled
def _disc(image, x, y, radius, value):
    size = image.shape[0]
    r = int(np.ceil(radius))
    for v in range(max(0, y - r), min(size, y + r + 1)):
        for u in range(max(0, x - r), min(size, x + r + 1)):
            if (u - x) ** 2 + (v - y) ** 2 <= radius * radius:
                image[v, u] = value


@compiled
def _border_of(image):
    """Rows and columns of border pixels in reading order: one of 4 neighbours is 0."""
    height, width = image.shape
    ys, xs = np.empty(image.size, np.int64), np.empty(image.size, np.int64)
    n = 0
    for y in range(height):
        for x in range(width):
            if image[y, x] == 0:
                continue
            if 0 < y < height - 1 and 0 < x < width - 1:
                upright = image[y - 1, x] > 0 and image[y + 1, x] > 0
                if upright and image[y, x - 1] > 0 and image[y, x + 1] > 0:
                    continue
            ys[n], xs[n] = y, x
            n += 1
    return ys[:n], xs[:n]


@compiled
def _damage_border(image, state, n_blobs, largest):
    """Erase or add discs around random border pixels."""
    ys, xs = _border_of(image)
    for _ in range(n_blobs):
        k = int(_next(state) * len(ys))
        radius = 1.0 + _next(state) * (largest - 1.0)
        value = 1 if _next(state) < 0.5 else 0
        if len(ys) > 0:
            _disc(image, xs[k], ys[k], radius, value)


@compiled
def _speckle(image, state, share):
    """Flip a share of the pixels, then set every pixel to the majority of 3 x 3."""
    height, width = image.shape
    noisy = np.empty_like(image)
    for y in range(height):
        for x in range(width):
            flips = _next(state) < share
            noisy[y, x] = 1 - image[y, x] if flips else image[y, x]
    # Loops: numba takes seconds to compile sums of slices.
    for y in range(1, height - 1):
        a, b, c = noisy[y - 1], noisy[y], noisy[y + 1]
        for x in range(1, width - 1):
            n_inside = a[x - 1] + a[x] + a[x + 1] + b[x - 1] + b[x] + b[x + 1]
            n_inside += c[x - 1] + c[x] + c[x + 1]
            image[y, x] = n_inside >= 5


@compiled
def _hide(image, state):
    """Hide part of the person: a vertical bar, a horizontal one, or a rectangle."""
    size = image.shape[0]
    kind = int(_next(state) * 3)
    width = int(size * (0.08 + 0.14 * _next(state)))
    height = int(size * (0.08 + 0.14 * _next(state)))
    if kind == 0:
        height = size
    elif kind == 1:
        width = size
    else:
        width, height = 2 * width, 2 * height
    left = int(_next(state) * max(1, size - width))
    top = int(_next(state) * max(1, size - height))
    image[top : top + height, left : left + width] = 0


@compiled
def draw_silhouettes(limbs, seeds, occlusion, noise):
    """Images of limbs (n_images, n_limbs, 2, 3), uint8: one inside, zero outside."""
    n_images, n_limbs = limbs.shape[:2]
    images = np.zeros((n_images, SIZE, SIZE), dtype=np.uint8)
    state = np.zeros(1, dtype=np.uint64)
    for i in range(n_images):
        image = images[i]
        state[0] = seeds[i]
        # A limb in front of something of its own colour is lost now and then.
        lost = int(_next(state) * n_limbs) if _next(state) < 0.15 * noise else -1
        for k in range(n_limbs):
            if k != lost:
                _draw_limb(image, limbs[i, k, 0], limbs[i, k, 1])
        if noise > 0:
            _damage_border(image, state, int(noise * 16 * _next(state)), 1 + 4 * noise)
            _speckle(image, state, 0.06 * noise)
        if _next(state) < occlusion:
            _hide(image, state)
    return images


def image_seeds(key, frames):
    """A seed for each frame, from its number and a key of integers."""
    base = np.random.SeedSequence(key).generate_state(1, dtype=np.uint64)
    # The odd factor keeps the number sequences of neighbouring frames from overlapping.
    return base + frames.astype(np.uint64) * np.uint64(0xD1342543DE82EF95)
