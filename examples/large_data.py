"""
Large data: rows and model on the disk
======================================

The fit maps the rows from a file and writes every machine to a store as soon as it is
complete. `predict` works in chunks. What to see: an interrupted fit resumes, a model
opens in milliseconds, and queries read only the subdomains that they need. The same
code works for millions of rows; this example has 6,000, to be quick.
"""

import tempfile
import time
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import overcover
from overcover import GP, OverlappingCoverRegressor

folder = Path(tempfile.mkdtemp())

# %%
# Write the inputs to a file block by block, as if they did not fit into memory.
n_rows, block = 6_000, 1_500
rows = np.lib.format.open_memmap(
    folder / "X.npy", mode="w+", dtype=np.float32, shape=(n_rows, 4)
)
y = np.empty(n_rows)
rng = np.random.default_rng(0)
for i in range(0, n_rows, block):
    rows[i : i + block] = rng.uniform(-2, 2, (block, 4))
    y[i : i + block] = np.sin(rows[i : i + block]).prod(axis=1)
y += 0.01 * rng.normal(size=n_rows)
rows.flush()

# %%
# Fit into a store. (`overcover.store.parquet_to_npy` converts Parquet files to such a
# file.) The hyperparameters are fixed, so there is no tuning.
X = np.load(folder / "X.npy", mmap_mode="r")
path = folder / "sines.ocm"
model = OverlappingCoverRegressor(
    GP(length_scale=2.0, noise=1e-3), subdomain_size=200, overlap=0.8, random_state=0
)
started = time.perf_counter()
overcover.store.fit_into(model, X, y, path)
print(f"fitted and written in {time.perf_counter() - started:.1f} s")
size = sum(file.stat().st_size for file in path.rglob("*") if file.is_file())
print(
    f"{overcover.store.inspect(path)['n_subdomains']} subdomains, {size / 1e6:.0f} MB"
)

# %%
# The same call again, as after a power cut: the fit does not repeat complete parts.
started = time.perf_counter()
overcover.store.fit_into(model, X, y, path)
print(f"again: {time.perf_counter() - started:.2f} s")

# %%
# Open the model later, perhaps on another computer. A query reads its own subdomains.
started = time.perf_counter()
loaded = overcover.load(path)
print(f"opened in {1e3 * (time.perf_counter() - started):.0f} ms")
print(loaded.predict(X[:3]).round(3), y[:3].round(3))

# %%
# Predict in chunks, straight into a file. `predict` limits its own memory, and chunks
# limit the memory of queries and predictions.
answers = np.lib.format.open_memmap(
    folder / "answers.npy", mode="w+", dtype=np.float64, shape=(n_rows,)
)
for i in range(0, n_rows, block):
    answers[i : i + block] = loaded.predict(X[i : i + block])
print(f"RMSE on the training rows {np.sqrt(np.mean((answers - y) ** 2)):.4f}")

# %%
# Every fifth prediction over the observed output.
figure, ax = plt.subplots(figsize=(5, 4.2), layout="constrained")
shown = ax.scatter(y[::5], answers[::5], c=X[::5, 0], s=4, cmap="viridis")
figure.colorbar(shown, ax=ax, label="first input")
ax.set(xlabel="observed", ylabel="predicted", title="from disk, in chunks")
plt.show()
