"""
Many computers: fit and predict with Dask
=========================================

The machines of a cover are independent of each other, so the workers of a Dask cluster
can fit them and predict with them in parallel. What to see: the rows are a Dask array,
which the workers compute block by block. The fit writes a model into a folder that all
workers share. It equals the local model bit by bit. Predictions are lazy: each worker
computes those of its own blocks.

The two workers here are threads of this process, so that the script runs anywhere.
``processes=True`` makes them processes; a script then needs ``if __name__ ==
"__main__":``. ``Client("tcp://scheduler:8786")`` connects to a cluster of other
computers.
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
# Rows in blocks of 1,000, as if from Parquet files. Dask computes them later.
random = da.random.default_rng(0)
X = random.uniform(-3, 3, (4_000, 2), chunks=(1_000, 2))
y = da.sin(2 * X[:, 0]) * da.cos(X[:, 1]) + random.normal(0, 0.1, 4_000, chunks=1_000)
print(X)

# %%
# Fit. The workers write their blocks to the folder, and one of them computes the cover.
# Then all workers fit machines, and write each as soon as it is complete. After an
# interruption, the same call resumes the fit.
folder = Path(tempfile.mkdtemp())  # in reality, a folder that all computers share
path = folder / "waves.ocm"
model = OverlappingCoverRegressor(
    GP(length_scale=1.0, noise=0.03), subdomain_size=200, overlap=0.8, random_state=0
)
distributed.fit(model, X, y, path, client)
print(f"{model.n_subdomains_} machines in {path.name}")

# %%
# Predictions for a Dask array are a Dask array, computed block by block. Here they are
# for a picture of 40,000 points.
side = da.linspace(-3, 3, 200, chunks=50)
plane = da.stack([part.ravel() for part in da.meshgrid(side, side)], axis=1)
plane = plane.rechunk((10_000, 2))
mean, std = distributed.predict(path, plane, return_std=True)
print(mean)
mean, std = client.persist((mean, std))  # the workers compute them once and keep them
print(f"mean of the predictions {mean.mean().compute():.3f}")

# %%
# The same without a cluster. Predictions for an array in memory are equal bit by bit.
# Those for a Dask array differ by rounding, because each block is a batch of its own.
X_here, y_here = X.compute(), y.compute()
local = OverlappingCoverRegressor(**model.get_params(deep=False)).fit(X_here, y_here)
answers = distributed.predict(path, X_here, client)
print("equal:", np.array_equal(answers, local.predict(X_here)))
rows, lazy = plane.compute(), mean.compute()
print("largest difference, lazy:", f"{np.abs(lazy - local.predict(rows)).max():.0e}")
print("the stored model:", overcover.load(path).predict(X_here[:2]).round(3))

# %%
# The predictions. The noise is 0.1, and so is the standard deviation, except at
# corners.
figure, axes = plt.subplots(1, 2, figsize=(8, 3.6), layout="constrained")
for ax, values, name in zip(axes, (mean, std), ("mean", "standard deviation")):
    picture = values.compute().reshape(200, 200)
    shown = ax.imshow(picture, origin="lower", extent=(-3, 3, -3, 3), cmap="viridis")
    figure.colorbar(shown, ax=ax)
    ax.set(title=name, xlabel="first input", ylabel="second input")
client.close()
cluster.close()
plt.show()
