"""The layout: imports point one way, extras are optional, examples exist."""

import ast
import inspect
import subprocess
import sys
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import overcover

ROOT = Path(overcover.__file__).parent
PATH = ("partition", "cover", "machines", "routing", "combination")
PATH += ("consult", "fitting", "learning", "regressor")
EXTRAS = ("matplotlib", "rich", "pandas", "pyarrow", "h5py", "cdflib", "typer")
EXTRAS += ("dask", "distributed")
# The commands are functions that typer reads, so it is imported with them.
COMMANDS = {
    ("overcover", "cli", name) for name in ("_app", "_fit", "_commands", "_trials")
}


MODULES = [n for n in overcover.__all__ if inspect.ismodule(getattr(overcover, n))]
PUBLIC = {n: getattr(overcover, n) for n in overcover.__all__ if n not in MODULES}
for _module in (getattr(overcover, name) for name in MODULES):
    members = {name: getattr(_module, name) for name in _module.__all__}
    PUBLIC |= {n: m for n, m in members.items() if inspect.isroutine(m)}


def name_of(file):
    """The parts of a module's name."""
    parts = file.relative_to(ROOT.parent).with_suffix("").parts
    return parts[:-1] if parts[-1] == "__init__" else parts


FILES = {name_of(file): file for file in sorted(ROOT.rglob("*.py"))}


@cache
def tree_of(name):
    return ast.parse(FILES[name].read_text(encoding="utf-8"))


@cache
def imported_by(name, everywhere=True):
    """Full names of all that a module imports, in its functions too or at its top."""
    package = name if FILES[name].stem == "__init__" else name[:-1]
    names = []
    for node in ast.walk(tree_of(name)) if everywhere else tree_of(name).body:
        if isinstance(node, ast.Import):
            names += [tuple(alias.name.split(".")) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            module = tuple(node.module.split(".")) if node.module else ()
            if node.level:
                module = package[: len(package) - node.level + 1] + module
            names += [(*module, alias.name) for alias in node.names]
    return names


def stages_imported(name):
    """Parts of the package that a module imports, by the first word of their path."""
    return {full[1] for full in imported_by(name) if full[0] == ROOT.name and full[1:]}


def modules(stage):
    """Modules of one stage, which is a module or a package."""
    return [name for name in FILES if name[1:2] == (stage,)]


@pytest.mark.parametrize("stage", PATH)
def test_imports_point_right_only(stage):
    """A stage knows those before it on the data path, never those after."""
    later = set(PATH[PATH.index(stage) + 1 :])
    assert modules(stage)
    for name in modules(stage):
        assert not stages_imported(name) & later, name


def test_the_regressor_and_its_stages_know_the_whole_path():
    """Guards the test above: it does see imports."""
    names = ((ROOT.name, stage) for stage in ("regressor", "fitting", "consult"))
    assert set.union(*map(stages_imported, names)) >= set(PATH[:-1])


def test_private_helpers_do_not_know_the_path():
    for name in FILES:
        if len(name) == 2 and name[1].startswith("_"):
            assert not stages_imported(name) & set(PATH), name


def test_the_core_imports_and_works_without_any_extra():
    code = f"""
import sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {EXTRAS!r}:
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, Missing())
import numpy as np
from overcover import GP, OverlappingCoverRegressor
X = np.linspace(0, 1, 60)[:, None]
model = OverlappingCoverRegressor(
    GP(length_scale=0.3, noise=0.1), subdomain_size=20, random_state=0, verbose=1
)
assert np.isfinite(model.fit(X, X[:, 0]).predict(X, return_std=True)).all()
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_dependencies_are_imported_when_they_are_used():
    """A name loads scikit-learn, the first compiled loop numba."""
    code = """
import sys
import overcover
assert not {"numpy", "sklearn", "numba"} & set(sys.modules)
assert overcover.metrics and overcover.GP and overcover.store.load is overcover.load
assert "sklearn" in sys.modules and "numba" not in sys.modules
from overcover._linalg import squared_differences
import numpy as np
assert squared_differences(np.zeros((1, 2)), np.ones((1, 2))) == 2
assert "numba" in sys.modules
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_the_package_lists_its_names_and_refuses_others():
    assert set(overcover.__all__) <= set(dir(overcover))
    with pytest.raises(AttributeError, match="has no attribute 'no_such_name'"):
        overcover.no_such_name  # noqa: B018, reading it is what fails


def test_no_module_imports_an_extra_at_its_top():
    for name in FILES.keys() - COMMANDS:
        outer = {full[0] for full in imported_by(name, everywhere=False)}
        assert not outer & set(EXTRAS), name


def test_only_the_distributed_part_imports_dask():
    dask = {"dask", "distributed"}
    importers = [n for n in FILES if dask & {full[0] for full in imported_by(n)}]
    assert {name[1] for name in importers} == {"distributed"}


@pytest.mark.parametrize("name", PUBLIC)
def test_every_public_name_is_documented_with_an_example(name):
    public, doc = PUBLIC[name], inspect.getdoc(PUBLIC[name])
    for section in ("Parameters\n----------", "Examples\n--------", ">>>"):
        assert section in doc
    documented = doc.split("Parameters\n----------")[1]
    for parameter in inspect.signature(public).parameters:
        assert parameter in documented, parameter
    for attribute, value in inspect.getmembers(public, callable):
        own = (getattr(value, "__module__", None) or "").startswith("overcover")
        if own and not attribute.startswith("_"):
            assert inspect.getdoc(value), f"{name}.{attribute}"


def test_every_module_says_what_it_is_for():
    for name in FILES:
        assert ast.get_docstring(tree_of(name)), name


# Imports each module first of all in a process that knows none of the others. Children
# share what does not belong to the package, so that each takes a moment.
FIRST_OF_ALL = """
import os, sys
import joblib, numpy, pandas, scipy.optimize, scipy.stats, sklearn.gaussian_process
import dask.distributed, rich.progress, typer
from importlib import import_module

for name in sys.stdin.read().split():
    child = os.fork()
    if child == 0:
        try:
            import_module(name)
        except BaseException as error:
            print(f"{name}: {error!r}", flush=True)
        os._exit(0)
    os.waitpid(child, 0)
"""


def test_every_module_can_be_imported_first():
    names = [".".join(name) for name in FILES if name[-1] != "__main__"]
    done = subprocess.run(
        [sys.executable, "-c", FIRST_OF_ALL],
        input="\n".join(names),
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_modules_import_each_other_in_one_direction():
    """No module, at its top, needs one that needs it: the graph has an order."""
    graph = {}
    for name in FILES:
        own = [f for f in imported_by(name, everywhere=False) if f[0] == ROOT.name]
        homes = (full if full in FILES else full[:-1] for full in own)
        graph[name] = {home for home in homes if home != name}
    order = list(TopologicalSorter(graph).static_order())  # an error if there is none
    tuning = order.index(("overcover", "tuning"))
    assert tuning < order.index(("overcover", "machines"))
    assert order.index(("overcover", "kernels")) < tuning


# Private names of another package, each with its reason.
BORROWED = {
    # The variational bound of sparse GPs descends in the units, and within the bounds,
    # of a tuning problem.
    ("overcover", "baselines", "_bound"): "overcover.tuning._problem",
}


def test_private_names_stay_in_their_package():
    for name in FILES:
        for full in imported_by(name):
            private = next((i for i, part in enumerate(full) if part[0] == "_"), None)
            home = full[:private]
            is_own = full[0] != ROOT.name or name[: len(home)] == home
            if private is not None and not is_own:
                borrowed = BORROWED.get(name, "nothing")
                assert ".".join(full).startswith(borrowed), (name, full)
