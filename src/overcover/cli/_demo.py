"""The demo: poses of people from their silhouettes, in under a minute."""

import time
from pathlib import Path

from sklearn.neighbors import KNeighborsRegressor

from .. import OverlappingCoverRegressor
from ..datasets import make_pose
from ..metrics import mean_joint_error
from ..report import write_report

SIZE = 150


def run_demo(folder, n_frames, jobs, done):
    """Fit people's poses on half of every motion: data, results, report or None."""
    data = make_pose("humaneva", n_frames=n_frames, n_jobs=jobs, cache=False)
    done()
    options = {"subdomain_size": SIZE, "random_state": 0, "n_jobs": jobs}
    methods = {
        "5 nearest neighbours": KNeighborsRegressor(5),
        "cover of GPs": OverlappingCoverRegressor("gp", **options),
        "cover of Twin GPs": OverlappingCoverRegressor("tgp", **options),
    }
    results = []
    for name, model in methods.items():
        start = time.perf_counter()
        model.fit(data.X_train, data.Y_train)
        end_of_fit = time.perf_counter()
        predicted = model.predict(data.X_test)
        micro = 1e6 * (time.perf_counter() - end_of_fit) / len(predicted)
        result = {"method": name, "error": mean_joint_error(data.Y_test, predicted)}
        times = {"fit_seconds": end_of_fit - start, "microseconds": micro}
        results.append(result | times)
        done()
    path, title = Path(folder) / "report.html", "Poses from silhouettes"
    rows = (data.X_train, data.Y_train, data.X_test, data.Y_test)
    try:
        report = write_report(model, path, *rows, title=title)
    except ImportError:
        report = None
    done()
    return data, results, report
