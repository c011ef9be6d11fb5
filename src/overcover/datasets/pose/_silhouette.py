r"""Silhouettes: tapered capsules drawn into small images, then damaged as wanted.

    skeleton -> motion -> camera -> [silhouette] -> features

A limb between image points a and b with radii :math:`r_a, r_b` covers every pixel p
with :math:`|p - a - s (b - a)| \le r_a + s (r_b - r_a)`, s the place of p along the
limb, held in [0, 1]. The person is scaled so that the longer side of the bounding box
takes `SIZE` less two margins.

Damage is drawn from a generator of its own for each image, seeded by the image's
number: it depends on nothing else, be it chunks or workers.
"""

import numpy as np

from ..._compiled import compiled as compiled
from ._skeleton import P

SIZE, MARGIN = 96, 8
"""Pixels of an image's side, and left free around the person."""

# Limbs: (point, point, radius, radius), radii in mm per metre of height. "skull" is a
# point between neck and head, so that head and neck have different widths.
_LIMBS = [
    ("pelvis", "chest", 68, 72),
    ("chest", "neck", 74, 44),
    ("neck", "head", 33, 33),
    ("skull", "head", 48, 43),
    *(
        (a.replace("_", f"{side}_"), b.replace("_", f"{side}_"), ra, rb)
        for side in ("left", "right")
        for a, b, ra, rb in [
            ("neck", "_shoulder", 36, 33),
            ("_hip", "_shoulder", 48, 36),
            ("_shoulder", "_elbow", 31, 24),
            ("_elbow", "_wrist", 25, 16),
            ("_wrist", "_hand", 18, 14),
            ("_hip", "_knee", 49, 32),
            ("_knee", "_ankle", 34, 20),
            ("_ankle", "_toe", 23, 16),
        ]
    ),
]
_SKULL = len(P)
_ENDS = np.array(
    [[{**P, "skull": _SKULL}[name] for name in limb[:2]] for limb in _LIMBS]
)
_RADII = np.array([limb[2:] for limb in _LIMBS], dtype=float)


def limbs_seen(joints, camera, height, girth):
    """Limbs in the image of a camera, shape (n_frames, n_limbs, 2, 3).

    Both ends of every limb: right, down, radius, in pixels of the camera. Joints have
    shape (n_frames, 21, 3); joints and height are in mm.
    """
    neck, head = joints[:, P["neck"]], joints[:, P["head"]].copy()
    skull = neck + 0.56 * (head - neck)
    # The highest point of the head is its skin, so its middle lies lower.
    joints = joints.copy()
    joints[:, P["head"]] = neck + 0.75 * (head - neck)
    pixels, depth = camera.project(np.concatenate([joints, skull[:, None]], axis=1))
    radii = _RADII * (height / 1000 * girth) * camera.focal / depth[:, _ENDS]
    return np.concatenate([pixels[:, _ENDS], radii[..., None]], axis=-1)


def fit_to_image(limbs):
    """Limbs moved and scaled so that the person fills the image.

    In pixels from the upper left corner of the image.
    """
    spots, radii = limbs[..., :2], limbs[..., 2:]
    low = (spots - radii).min(axis=(1, 2))
    high = (spots + radii).max(axis=(1, 2))
    scale = (SIZE - 2 * MARGIN) / (high - low).max(axis=1)
    fitted = limbs * scale[:, None, None, None]
    middle = (scale[:, None] * (low + high) / 2)[:, None, None]
    fitted[..., :2] += SIZE / 2 - middle
    return fitted


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
def on_border(image, y, x):
    """Whether a pixel is inside and one of its four neighbours is not."""
    if image[y, x] == 0:
        return False
    last = image.shape[0] - 1
    if y == 0 or x == 0 or y == last or x == last:
        return True
    return (
        image[y - 1, x] == 0
        or image[y + 1, x] == 0
        or image[y, x - 1] == 0
        or image[y, x + 1] == 0
    )


@compiled
def _damage_border(image, state, n_blobs, largest):
    """Discs around border pixels, eaten or added by turns of a coin."""
    size = image.shape[0]
    ys = np.empty(size * size, dtype=np.int64)
    xs = np.empty(size * size, dtype=np.int64)
    n_border = 0
    for y in range(size):
        for x in range(size):
            if on_border(image, y, x):
                ys[n_border], xs[n_border] = y, x
                n_border += 1
    for _ in range(n_blobs):
        k = int(_next(state) * n_border)
        radius = 1.0 + _next(state) * (largest - 1.0)
        value = 1 if _next(state) < 0.5 else 0
        if n_border > 0:
            _disc(image, xs[k], ys[k], radius, value)


@compiled
def _speckle(image, state, share):
    """Flip a share of the pixels, then let every pixel follow its neighbourhood."""
    size = image.shape[0]
    noisy = image.copy()
    for y in range(size):
        for x in range(size):
            if _next(state) < share:
                noisy[y, x] = 1 - noisy[y, x]
    for y in range(1, size - 1):
        for x in range(1, size - 1):
            votes = 0
            for v in range(y - 1, y + 2):
                for u in range(x - 1, x + 2):
                    votes += noisy[v, u]
            image[y, x] = 1 if votes >= 5 else 0


@compiled
def _hide(image, state):
    """An upright bar, a level one, or a rectangle takes part of the person away."""
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
def draw_silhouettes(limbs, seeds, occlusion, noise, size=SIZE):
    """Silhouettes of limbs of shape (n_images, n_limbs, 2, 3), from `fit_to_image`.

    `seeds` decide the damage of each image. `occlusion` is the probability that a bar
    or rectangle hides part of a person, `noise` the strength of faulty segmentation:
    lost limbs, blobs at the border, speckle. Images of uint8: one inside, zero outside.
    """
    n_images, n_limbs = limbs.shape[:2]
    images = np.zeros((n_images, size, size), dtype=np.uint8)
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
    """A seed for each frame, a hash of its number and of a key.

    The key, a list of int, tells the sequence and the camera from others.
    """
    base = np.random.SeedSequence(key).generate_state(1, dtype=np.uint64)
    # splitmix64 scrambles its counter, so counters far apart suffice: the odd factor
    # keeps the runs of neighbouring frames from overlapping.
    return base + frames.astype(np.uint64) * np.uint64(0xD1342543DE82EF95)
