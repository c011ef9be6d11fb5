"""A report is one safe file, and its numbers are the model's."""

import re
import shutil
import subprocess
from copy import copy
from html import escape
from html.parser import HTMLParser
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression
from sklearn.metrics import mean_absolute_error, r2_score, root_mean_squared_error

from conftest import wave
from overcover import GP, OverlappingCoverRegressor, TwinGP
from overcover._markup import number, percent
from overcover.advice import advise, with_notes
from overcover.report import recalled_rows, write_report
from overcover.report._model import show_findings

# What a column may be called by somebody who means no good, or just knows no better.
NASTY = "<script>alert('x')</script>"
FEATURES = ["plain", NASTY, 'quote " and & amp', "$money$"]
OUTPUTS = ["good", "</td><img src=x onerror=alert(1)>"]
CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))),
    None,
)
VOID = {"meta", "img", "br", "hr", "link", "input"}


class Page(HTMLParser):
    """The elements of a page, the text of its cells, and whether it is well formed."""

    def __init__(self, text):
        super().__init__()
        self.elements, self.open, self.tables, self.headings = [], [], {}, []
        self._cell = None
        self.feed(text)
        assert not self.open, self.open

    def handle_starttag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))
        if tag not in VOID:
            self.open.append(tag)
        if tag == "table":
            self._rows = []
        if tag == "tr":
            self._rows.append([])
        if tag in ("td", "th", "caption", "h1", "h2", "h3"):
            self._cell = ""

    def handle_endtag(self, tag):
        assert self.open.pop() == tag
        if tag in ("td", "th"):
            self._rows[-1].append(self._cell)
        if tag == "caption":
            self._caption = self._cell
        if tag in ("h1", "h2", "h3"):
            self.headings.append((int(tag[1]), self._cell))
        if tag == "table":
            header, *lines = self._rows
            self.tables[self._caption] = pd.DataFrame(lines, columns=header)

    def handle_data(self, data):
        if self._cell is not None:
            self._cell += data

    def all(self, tag):
        return [attributes for name, attributes in self.elements if name == tag]


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.uniform(-3, 3, (700, 4))
    Y = np.column_stack([wave(X), 100 + 10 * X[:, 2]])
    Y += rng.normal(size=Y.shape) * [0.05, 1.0]
    X, Y = pd.DataFrame(X, columns=FEATURES), pd.DataFrame(Y, columns=OUTPUTS)
    return X[:500], Y[:500], X[500:], Y[500:]


@pytest.fixture(scope="module")
def model(data):
    machine = GP(length_scale=[1.5, 1.5, 6.0, 500.0], noise=0.01)
    return OverlappingCoverRegressor(machine, subdomain_size=80, random_state=0).fit(
        *data[:2]
    )


@pytest.fixture(scope="module")
def path(model, data, tmp_path_factory):
    folder = tmp_path_factory.mktemp("report")
    return write_report(model, folder / "report.html", *data, title=f"On {NASTY}")


@pytest.fixture(scope="module")
def page(path):
    return Page(path.read_text(encoding="utf-8"))


def test_nothing_is_loaded_from_anywhere(page, path):
    for _, attributes in page.elements:
        for name in ("src", "href", "srcset", "data", "action"):
            value = attributes.get(name) or ""
            assert value == "" or value.startswith(("data:image/", "#"))
    text = path.read_text(encoding="utf-8")
    assert "url(" not in text
    assert "@import" not in text
    assert not page.all("script")
    assert not page.all("link")


def test_links_within_the_page_lead_somewhere(page):
    addresses = {attributes.get("id") for _, attributes in page.elements}
    links = [attributes["href"] for attributes in page.all("a")]
    assert len(links) >= 7
    assert {link[1:] for link in links} <= addresses


def test_whatever_a_column_is_called_it_is_only_text(page, path):
    text = path.read_text(encoding="utf-8")
    assert NASTY not in text
    assert "<img src=x" not in text
    assert escape(NASTY) in text
    assert set(page.tables["Inputs"]["input"]) == set(FEATURES)
    assert set(page.tables["Outputs"]["output"]) == set(OUTPUTS)
    assert page.headings[0] == (1, f"On {NASTY}")


def test_it_can_be_read_aloud(page):
    assert page.all("html") == [{"lang": "en"}]
    images = page.all("img")
    assert len(images) >= 6
    assert all(len(image["alt"]) > 20 for image in images)
    levels = [level for level, _ in page.headings]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))
    assert all(th["scope"] in ("col", "row") for th in page.all("th"))
    assert len(page.all("caption")) == len(page.all("table"))
    ids = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
    assert len(ids) == len(set(ids))


def luminance(color):
    digits = color[1:] if len(color) == 7 else "".join(2 * c for c in color[1:])
    channels = np.array([int(digits[i : i + 2], 16) / 255 for i in (0, 2, 4)])
    linear = np.where(
        channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4
    )
    return linear @ [0.2126, 0.7152, 0.0722]


def test_text_has_contrast(path):
    style = re.search(r"<style>(.*?)</style>", path.read_text(encoding="utf-8"), re.S)
    colors = re.findall(r"[ ;{]color: (#[0-9a-f]+)", style[1])
    assert len(colors) >= 3
    for color in colors:
        assert 1.05 / (luminance(color) + 0.05) >= 7


def test_it_fits_a_phone_and_a_printer(page, path):
    assert {"name": "viewport", "content": "width=device-width, initial-scale=1"} in (
        page.all("meta")
    )
    assert "@media print" in path.read_text(encoding="utf-8")


def test_errors_are_those_computed_directly(page, model, data):
    _, _, X_test, Y_test = data
    mean = model.predict(X_test)
    low, high = model.predict_interval(X_test, coverage=0.95)
    held = (low <= Y_test) & (Y_test <= high)
    table = page.tables["Errors by output, the worst first"].set_index("output")
    for j, name in enumerate(OUTPUTS):
        y = Y_test[name]
        assert table["RMSE"][name] == number(root_mean_squared_error(y, mean[:, j]))
        assert table["mean |error|"][name] == number(mean_absolute_error(y, mean[:, j]))
        assert table["bias"][name] == number(np.mean(mean[:, j] - y))
        assert table["R²"][name] == number(r2_score(y, mean[:, j]))
        assert table["95 % intervals hold"][name] == percent(held[name].mean())


def test_coverage_is_that_of_predict_interval(page, model, data):
    _, _, X_test, Y_test = data
    table = page.tables["Coverage of central intervals"]
    assert list(table["promised"]) == ["50 %", "80 %", "90 %", "95 %", "99 %"]
    for promised, held in zip((0.5, 0.8, 0.9, 0.95, 0.99), table["held"]):
        low, high = model.predict_interval(X_test, coverage=promised)
        assert held == percent(np.mean((low <= Y_test) & (Y_test <= high)))


def test_the_worst_predictions_are_the_worst(page, model, data):
    _, _, X_test, Y_test = data
    mean, std = model.predict(X_test, return_std=True)
    scaled = np.abs(Y_test.to_numpy() - mean) / Y_test.to_numpy().std(axis=0)
    order = np.argsort(-scaled.max(axis=1))[:10]
    table = page.tables["The largest errors"]
    assert list(table["test row"]) == [str(i) for i in order]
    i, j = order[0], np.argmax(scaled[order[0]])
    first = table.iloc[0]
    assert first["output"] == OUTPUTS[j]
    assert first["observed"] == number(Y_test.iloc[i, j])
    assert first["predicted"] == number(mean[i, j])
    # In units of the output, but for what orders rows of several outputs.
    assert first["standard deviation, predicted"] == number(std[i, j])
    assert first["error"] == number(mean[i, j] - Y_test.iloc[i, j])
    unit = "in standard deviations of the test outputs"
    assert first[f"error, {unit}"] == number(scaled[i, j], 3)
    assert f"mean width, {unit}" in page.tables["Coverage of central intervals"]


def test_subdomains_with_large_errors_are_listed(page, model, data):
    _, _, X_test, Y_test = data
    pages = model.explain(X_test)
    home = np.array([p.subdomains[np.argmax(p.votes.mean(axis=1))] for p in pages])
    scaled = (Y_test.to_numpy() - model.predict(X_test)) / Y_test.to_numpy().std(axis=0)
    table = page.tables["The subdomains with the largest errors"]
    rmse = {k: np.sqrt(np.mean(scaled[home == k] ** 2)) for k in np.unique(home)}
    assert list(table["subdomain"]) == [
        str(k) for k in sorted(rmse, key=rmse.__getitem__, reverse=True)[:10]
    ]
    for k, count, error in table.iloc[:, :3].itertuples(index=False):
        assert count == number(int(np.sum(home == int(k))))
        assert error == number(rmse[int(k)])


def test_data_and_timings_are_the_models(page, model, data):
    X, Y = data[:2]
    inputs = page.tables["Inputs"].set_index("input")
    for name, scale in zip(FEATURES, model.length_scales_):
        assert inputs["mean"][name] == number(X[name].mean())
        assert inputs["length scale"][name] == number(scale)
        assert inputs["spread"][name] == number(X[name].std(ddof=0) / scale, 3)
    outputs = page.tables["Outputs"].set_index("output")
    assert outputs["most"]["good"] == number(Y["good"].max())
    timings = page.tables["Timings"].set_index("stage")["seconds"]
    for stage, seconds in model.timings_.items():
        assert timings[stage] == f"{seconds:.2f}"
    options = page.tables["Options"].set_index("option")["value"]
    assert options["subdomain_size"] == "80"


def test_all_findings_are_told(path, model, data):
    findings = advise(model, *data)
    assert findings
    text = path.read_text(encoding="utf-8")
    for finding in findings:
        assert escape(finding.text) in text


def test_notes_of_the_fit_are_told_and_nothing_is_cleared_untested(model):
    def summary(is_tested, notes):
        carrier = copy(model)
        carrier.notes_ = notes
        return show_findings(with_notes(carrier, []), is_tested)

    clear = "Nothing gives reason for concern"
    assert clear not in summary(False, [])
    assert "Not checked, for lack of test rows: how large errors" in summary(False, [])
    assert clear in summary(True, [])
    page = summary(True, ["warning: <b> never varied", "All rows are alike."])
    assert clear not in page
    assert '<li class="warning"><strong>warning</strong>&lt;b&gt; never varied' in page
    assert '<li class="note"><strong>note</strong>All rows are alike.' in page


def test_dates_are_shown_as_dates(tmp_path):
    days = np.arange(17532.0, 17632.0)  # from the first of January 2018
    X = pd.DataFrame({"when": days, "n": days % 7})
    model = OverlappingCoverRegressor(GP(length_scale=30.0, noise=0.1)).fit(X, X["n"])
    path = write_report(model, tmp_path / "r.html", X, X["n"], dates=["when"])
    text = path.read_text(encoding="utf-8")
    (when,) = Page(text).tables["Inputs"].query("input == 'when'").to_dict("records")
    assert (when["least"], when["most"]) == ("2018-01-01", "2018-04-10")
    assert when["length scale"] == "30 days"
    assert when["standard deviation"] == f"{number(days.std())} days"


def test_pyplot_is_left_alone(model, data, tmp_path):
    import matplotlib.pyplot as plt

    before = plt.get_fignums()
    write_report(model, tmp_path / "again.html", *data)
    assert plt.get_fignums() == before


def test_without_test_rows_it_says_so(model, data, tmp_path):
    path = write_report(model, str(tmp_path / "new" / "report.html"), *data[:2])
    page = Page(path.read_text(encoding="utf-8"))
    assert "Errors by output, the worst first" not in page.tables
    assert "Give X_test and y_test" in path.read_text(encoding="utf-8")


@pytest.mark.parametrize("machine", ["gp", TwinGP(1.5, 10.0)])
def test_a_model_knows_the_rows_it_was_fitted_on(machine, data, tmp_path):
    X, Y, X_test, Y_test = data
    machine = GP(length_scale=1.5, noise=0.01) if machine == "gp" else machine
    model = OverlappingCoverRegressor(machine, subdomain_size=80, random_state=0)
    rows, outputs = recalled_rows(model.fit(X, Y))
    np.testing.assert_allclose(rows, X, atol=1e-9)
    np.testing.assert_allclose(outputs, Y, atol=1e-6)
    path = write_report(model, tmp_path / "r.html", X_test=X_test, y_test=Y_test)
    page = Page(path.read_text(encoding="utf-8"))
    given = write_report(model, tmp_path / "g.html", *data)
    wanted = Page(given.read_text(encoding="utf-8"))
    for table in ("Inputs", "Outputs", "Errors by output, the worst first"):
        pd.testing.assert_frame_equal(page.tables[table], wanted.tables[table])


@pytest.mark.parametrize(
    ("machine", "size"),
    [
        (LinearRegression(), 80),
        (TwinGP(1.5, 1.0, 0.01, 0.01), 80),
        (GP(length_scale=1.5, noise=0.01), 10**6),
    ],
    ids=["no variance", "twin gp", "one subdomain"],
)
def test_other_models_have_reports_too(machine, size, data, tmp_path):
    X, Y, X_test, Y_test = (part.to_numpy() for part in data)
    y, y_test = Y[:, 0], np.full(len(Y_test), 0.5)  # test outputs that never vary
    model = OverlappingCoverRegressor(machine, subdomain_size=size, random_state=0)
    path = write_report(
        model.fit(X[:, :1], y), tmp_path / "r.html", X[:, :1], y, X_test[:, :1], y_test
    )
    tables = Page(path.read_text(encoding="utf-8")).tables
    assert tables["Errors by output, the worst first"]["R²"][0] == "-"
    held = "95 % intervals hold" in tables["Errors by output, the worst first"]
    assert held == model.machine_.has_variance


def test_many_columns_do_not_make_it_long(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 90))
    Y = X[:, :60] @ rng.normal(size=(60, 60))
    model = OverlappingCoverRegressor(
        GP(length_scale=10.0, noise=0.1), subdomain_size=60, random_state=0
    ).fit(X[:100], Y[:100])
    path = write_report(model, tmp_path / "r.html", X[:100], Y[:100], X[100:], Y[100:])
    page = Page(path.read_text(encoding="utf-8"))
    assert len(page.tables["Inputs"]) == 20
    assert "Not shown: 70 more inputs." in path.read_text(encoding="utf-8")


def test_a_report_that_fails_leaves_the_old_one(model, data, tmp_path, monkeypatch):
    old = tmp_path / "report.html"
    old.write_text("old")

    def fail(title, sections):
        raise RuntimeError("no ink")

    monkeypatch.setattr("overcover.report.page", fail)
    with pytest.raises(RuntimeError, match="no ink"):
        write_report(model, old, *data)
    assert old.read_text() == "old"
    assert [file.name for file in tmp_path.iterdir()] == ["report.html"]


def test_wrong_data_are_refused(model, data, tmp_path):
    X, Y, X_test, _ = data
    path = tmp_path / "r.html"
    with pytest.raises(ValueError, match="10 rows, the cover 500"):
        write_report(model, path, X[:10], Y[:10])
    with pytest.raises(ValueError, match="both X and y"):
        write_report(model, path, X)
    with pytest.raises(ValueError, match="both X_test and y_test"):
        write_report(model, path, X, Y, X_test)
    with pytest.raises(ValueError, match="one row of outputs per row"):
        write_report(model, path, X, Y[:10])
    with pytest.raises(TypeError, match="last step"):
        write_report(LinearRegression(), path, X, Y)
    assert not path.exists()


def browse(file, *options):
    """The page as a browser ends up with it, and what the browser complained about."""
    done = subprocess.run(
        [
            *(CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu"),
            *("--enable-logging=stderr", *options, "--dump-dom", file.as_uri()),
        ],
        capture_output=True,
        encoding="utf-8",
        timeout=120,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout, [line for line in done.stderr.splitlines() if "CONSOLE" in line]


in_a_browser = pytest.mark.skipif(CHROMIUM is None, reason="no chromium is installed")


@in_a_browser
def test_a_browser_shows_it_without_a_complaint(path, tmp_path):
    # The page forbids every request, so one that is tried is complained about.
    shown, complaints = browse(path, f"--user-data-dir={tmp_path}/profile")
    assert not complaints
    assert "The worst predictions" in shown
    # Guards the test itself: it does see complaints.
    text = path.read_text(encoding="utf-8")
    bad = tmp_path / "bad.html"
    bad.write_text(
        text.replace(
            "</main>", '<img alt="" src="http://example.invalid/x.png"></main>'
        ),
        encoding="utf-8",
    )
    assert browse(bad, f"--user-data-dir={tmp_path}/profile")[1]


@in_a_browser
def test_on_a_phone_nothing_sticks_out(path, tmp_path):
    # A browser window is at least 500 wide; a frame may be as narrow as a phone.
    inner = escape(path.read_text(encoding="utf-8"))
    outer = tmp_path / "phone.html"
    outer.write_text(
        f"""<!DOCTYPE html><meta charset="utf-8"><title>none</title>
<iframe style="width:390px;height:800px;border:0" srcdoc="{inner}"></iframe>
<script>onload = () => {{
  const page = document.querySelector("iframe").contentDocument;
  const images = [...page.images].every(image => image.naturalWidth > 0);
  document.title = `${{page.documentElement.scrollWidth}} ${{images}}`;
}};</script>""",
        encoding="utf-8",
    )
    shown, _ = browse(outer, f"--user-data-dir={tmp_path}/profile")
    width, images = re.search(r"<title>(\d+) (\w+)</title>", shown).groups()
    assert int(width) <= 390
    assert images == "true"
