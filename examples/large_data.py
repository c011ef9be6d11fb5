"""
Large data: rows and model on the disk
======================================

Rows are mapped from a file, every machine is written to a store as soon as it is done,
and answers come in chunks. What to see: an interrupted fit goes on where it stopped,
opening a model takes milliseconds, and only the subdomains that are asked are read.
The same lines do for some million rows; here there are 6,000, to be quick.
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
# Inputs in a file, made block by block, as if they did not fit into memory.
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
# Fit into a store. `overcover.store.parquet_to_npy` makes such a file from Parquet.
# Tuning and partition hold float64 copies of X; machines do not: with hyperparameters
# given, as here, nothing is tuned.
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
# The same call again, say after a power cut: what is done is not done twice.
started = time.perf_counter()
overcover.store.fit_into(model, X, y, path)
print(f"again: {time.perf_counter() - started:.2f} s")

# %%
# Open it, elsewhere and later; a query reads its own subdomains.
started = time.perf_counter()
loaded = overcover.load(path)
print(f"opened in {1e3 * (time.perf_counter() - started):.0f} ms")
print(loaded.predict(X[:3]).round(3), y[:3].round(3))

# %%
# Answers in chunks, straight into a file. `predict` bounds its own memory; chunks bound
# that of rows and answers.
answers = np.lib.format.open_memmap(
    folder / "answers.npy", mode="w+", dtype=np.float64, shape=(n_rows,)
)
for i in range(0, n_rows, block):
    answers[i : i + block] = loaded.predict(X[i : i + block])
print(f"RMSE on the rows themselves {np.sqrt(np.mean((answers - y) ** 2)):.4f}")

# %%
# Every fifth answer beside what was observed, read from the two files.
figure, ax = plt.subplots(figsize=(5, 4.2), layout="constrained")
shown = ax.scatter(y[::5], answers[::5], c=X[::5, 0], s=4, cmap="viridis")
figure.colorbar(shown, ax=ax, label="first input")
ax.set(xlabel="observed", ylabel="answered", title="from the disk, in chunks")
plt.show()
