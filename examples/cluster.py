"""
Many computers: fit and predict with Dask
=========================================

The machines of a cover do not know of each other, so a cluster can fit them, and answer
queries, wherever there is a worker. What to see: rows that are a Dask array, computed
block by block, become a model in a folder that all workers share; it is the local
model, bit by bit; and queries are answered lazily, where their blocks are.

The cluster here is two workers that are threads of this process, so that the script
runs as it is. ``processes=True`` makes them processes, in a script only under ``if
__name__ == "__main__":``; ``Client("tcp://scheduler:8786")`` finds other computers.
"""

import tempfile
from pathlib import Path

import dask.array as da
import matplotlib.pyplot as plt
import numpy as np
from distributed import Client, LocalCluster

import overcover
from overcover import GP, OverlappingCoverRegressor, distributed

cluster = LocalCluster(
    n_workers=2, threads_per_worker=1, processes=False, dashboard_address=":0"
)
client = Client(cluster)
print(f"{len(client.nthreads())} workers")

# %%
# Rows in blocks of 1,000, as they would come from Parquet files. Nothing is computed
# yet but the seeds.
random = da.random.default_rng(0)
X = random.uniform(-3, 3, (4_000, 2), chunks=(1_000, 2))
y = da.sin(2 * X[:, 0]) * da.cos(X[:, 1]) + random.normal(0, 0.1, 4_000, chunks=1_000)
print(X)

# %%
# Fit. Workers write their blocks to the folder, one of them makes the cover, and then
# all fit machines, each of which is written as soon as it is done. An interrupted fit
# goes on when it is called again.
folder = Path(tempfile.mkdtemp())  # stands for one that all computers see
path = folder / "waves.ocm"
model = OverlappingCoverRegressor(
    GP(length_scale=1.0, noise=0.03), subdomain_size=200, overlap=0.8, random_state=0
)
distributed.fit(model, X, y, path, client)
print(f"{model.n_subdomains_} machines in {path.name}")

# %%
# Dask arrays are answered lazily: a Dask array comes back, which is computed block by
# block, here for a picture of 40,000 points.
side = da.linspace(-3, 3, 200, chunks=50)
plane = da.stack([part.ravel() for part in da.meshgrid(side, side)], axis=1)
plane = plane.rechunk((10_000, 2))
mean, std = distributed.predict(path, plane, return_std=True)
print(mean)
mean, std = client.persist((mean, std))  # computed once, kept by the workers
print(f"mean of the answers {mean.mean().compute():.3f}")

# %%
# The same without a cluster. Answers of an array in memory are equal bit by bit; those
# of a Dask array but for rounding, since queries are answered together with others of
# their block.
X_here, y_here = X.compute(), y.compute()
local = OverlappingCoverRegressor(**model.get_params(deep=False)).fit(X_here, y_here)
answers = distributed.predict(path, X_here, client)
print("equal:", np.array_equal(answers, local.predict(X_here)))
rows, lazy = plane.compute(), mean.compute()
print("largest difference, lazy:", f"{np.abs(lazy - local.predict(rows)).max():.0e}")
print("a model as any other:", overcover.load(path).predict(X_here[:2]).round(3))

# %%
# What was answered. The noise is 0.1; so are standard deviations, but for the corners.
figure, axes = plt.subplots(1, 2, figsize=(8, 3.6), layout="constrained")
for ax, values, name in zip(axes, (mean, std), ("mean", "standard deviation")):
    picture = values.compute().reshape(200, 200)
    shown = ax.imshow(picture, origin="lower", extent=(-3, 3, -3, 3), cmap="viridis")
    figure.colorbar(shown, ax=ax)
    ax.set(title=name, xlabel="first input", ylabel="second input")
client.close()
cluster.close()
plt.show()
