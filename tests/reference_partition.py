"""Partition rules as sentences in Python: one pair at a time, slow, obviously right."""


def dist_sq(x, center):
    return sum((a - b) ** 2 for a, b in zip(x, center))


def nearest_labels(points, centers):
    """Nearest centre of each point, the lower index on ties."""
    return [
        min(range(len(centers)), key=lambda k: (dist_sq(x, centers[k]), k))
        for x in points
    ]


def target_sizes(labels, n_clusters):
    """N/K each; of the clusters, the fullest get the rows left over."""
    size, n_larger = divmod(len(labels), n_clusters)
    fullest = sorted(range(n_clusters), key=lambda k: (-labels.count(k), k))
    return [size + (k in fullest[:n_larger]) for k in range(n_clusters)]


def assign_and_balance(points, centers):
    """Assign to the nearest, then move the globally nearest pair until balanced."""
    clusters = range(len(centers))
    labels = nearest_labels(points, centers)
    sizes = target_sizes(labels, len(centers))
    while True:
        pairs = [
            (dist_sq(x, centers[k]), i, k)
            for i, x in enumerate(points)
            if labels.count(labels[i]) > sizes[labels[i]]
            for k in clusters
            if labels.count(k) < sizes[k]
        ]
        if not pairs:
            return labels
        _, i, k = min(pairs)
        labels[i] = k


def fill_nearest_pairs(points, centers):
    """Take the globally nearest pair of a free point and an open centre."""
    sizes = target_sizes(nearest_labels(points, centers), len(centers))
    labels = [None] * len(points)
    while None in labels:
        _, i, k = min(
            (dist_sq(x, centers[k]), i, k)
            for i, x in enumerate(points)
            if labels[i] is None
            for k in range(len(centers))
            if labels.count(k) < sizes[k]
        )
        labels[i] = k
    return labels


def inertia(points, labels):
    """Sum of squared distances to the mean of the own cluster."""
    total = 0.0
    for k in set(labels):
        members = [x for x, label in zip(points, labels) if label == k]
        mean = [sum(column) / len(members) for column in zip(*members)]
        total += sum(dist_sq(x, mean) for x in members)
    return total


def best_exchange_gain(points, labels, centers):
    """Most that exchanging two points of two clusters lowers J at fixed centres."""

    def cost(i, k):
        return dist_sq(points[i], centers[k])

    gains = [
        cost(i, a) + cost(j, b) - cost(i, b) - cost(j, a)
        for i, a in enumerate(labels)
        for j, b in enumerate(labels)
        if a != b
    ]
    return max(gains, default=0.0)


def best_gift_gain(points, labels, centers):
    """Most that a cluster lowers J by giving a point to one that is smaller."""
    gains = [
        dist_sq(x, centers[a]) - dist_sq(x, centers[b])
        for x, a in zip(points, labels)
        for b in range(len(centers))
        if labels.count(a) > labels.count(b)
    ]
    return max(gains, default=0.0)
