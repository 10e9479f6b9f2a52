"""Figures and the page: they hold what they should, need nothing from outside, and fail clearly."""

import errno
import html.parser
import os
import re

import numpy as np
import pytest

from results.runs import autoregression, gaussian, posterior
from schuss.results import Moments, Posterior, Stats, figures, page

VOID = {"meta", "img", "br"}


class Reader(html.parser.HTMLParser):
    """Checks that tags close, and collects them and the text."""

    def __init__(self):
        super().__init__()
        self.open, self.tags, self.text = [], [], []

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


def read(text):
    reader = Reader()
    reader.feed(text)
    assert reader.open == []
    return reader, "".join(reader.text)


@pytest.fixture(scope="module")
def report():
    return page.page(posterior())


def test_page_is_whole(report):
    reader, text = read(report)
    assert text.index("Converged") < text.index("Summary") < text.index("Mixing")
    for section in ("Tuning", "Cost", "Settings", "What to do next", "schuss", "2,000", "ESH"):
        assert section in text
    assert sum(tag == "img" for tag, _ in reader.tags) == 2


def test_page_needs_nothing_from_outside(report):
    reader, _ = read(report)
    assert not {tag for tag, _ in reader.tags} & {"script", "link", "iframe", "object"}
    sources = [attrs[key] for _, attrs in reader.tags for key in ("src", "href") if key in attrs]
    assert sources and all(source.startswith("data:image/png;base64,") for source in sources)
    assert not re.search(r"https?://", report)


def test_names_are_escaped(report):
    reader, text = read(report)
    assert "theta[Deer<b>field]" in text and "eight <schools>" in text
    assert not {tag for tag, _ in reader.tags} & {"b", "schools"}


def test_bad_run_says_so_first():
    x = autoregression(1, 4, 300, 6)
    x[2, :, 1] += 4
    _, text = read(page.page(posterior(x=x)))
    assert text.index("NOT converged") < text.index("and chain 2 (mean log-density")
    assert text.index("→") < text.index("Summary")
    assert "until the verdict is green" in text


def test_other_coordinates_are_told_by_name():
    """The second flat coordinate is the logarithm of tau."""
    told = {"coordinates": "all else is normal given {}", "leaders": (1,)}
    post = posterior(**told)
    assert post.coordinates == "all else is normal given tau"
    assert "all else is normal given tau" in read(page.page(post))[1]
    assert posterior().coordinates == "as given"


@pytest.mark.parametrize(
    "fields",
    [
        {"history": (), "acceptance": None, "exact": False},
        {"weights": np.full((4, 100), 2.0), "gradients": {}, "seconds": {}},
        {"frozen": np.array([True, False, False, False]), "step_size": np.arange(1.0, 5)},
    ],
)
def test_pages_of_other_runs(fields):
    read(page.page(posterior(x=autoregression(7, 4, 100, 6), **fields)))


def test_page_of_moments():
    x = autoregression(2)
    moments = Moments(x.mean(axis=1), x.var(axis=1), np.full(4, 1000.0))
    reader, text = read(page.page(Posterior(stats=Stats(np.empty((4, 0))), moments=moments)))
    assert "moments only" in text and not any(tag == "img" for tag, _ in reader.tags)
    with pytest.raises(ValueError, match="only moments"):
        Posterior(stats=Stats(np.empty((4, 0))), moments=moments).plot()


def test_page_of_a_tiny_run():
    x = autoregression(3, 1, 2, 1)
    post = Posterior(stats=Stats(energy=gaussian(x)), draws=x, x=x)
    read(page.page(post))
    post.plot()


def test_report_is_written_whole_or_not_at_all(tmp_path, monkeypatch):
    post = posterior(x=autoregression(8, 4, 50, 6))
    monkeypatch.setattr(page, "page", lambda post: "<!doctype html>")
    where = tmp_path / "run.html"
    assert post.report(where) == where and where.read_text().startswith("<!doctype html>")
    assert where.stat().st_mode & 0o777 == 0o666 & ~_umask()
    with pytest.raises(FileNotFoundError, match="create"):
        post.report(tmp_path / "missing" / "run.html")
    with pytest.raises(IsADirectoryError, match="must be a file"):
        post.report(tmp_path)
    before = where.read_text()

    def full(*_, **__):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(OSError, match="free some space") as caught:
        post.report(where)
    assert caught.value.errno == errno.ENOSPC
    assert where.read_text() == before and [p.name for p in tmp_path.iterdir()] == ["run.html"]


def _umask():
    mask = os.umask(0)
    os.umask(mask)
    return mask


def test_figure(tmp_path):
    figure = posterior(x=autoregression(9, 4, 100, 6)).plot(tmp_path / "run.png", count=2)
    assert (tmp_path / "run.png").stat().st_size > 10_000
    labels = [axes.get_ylabel() for axes in figure.axes]
    assert "energy" in labels and len([label for label in labels if label]) == 3
    titles = [axes.get_title() for axes in figure.axes]
    assert {"step size", "mean energy", "acceptance"} <= set(titles)
    empty = type(figure)(figsize=(1, 1))
    with pytest.raises(OSError, match="folder that exists"):
        figures.save(empty, tmp_path / "missing" / "run.png")
    with pytest.raises(ValueError, match="format matplotlib knows"):
        figures.save(empty, tmp_path / "run.nonsense")


def test_worst_rows_are_drawn():
    x = autoregression(4, 4, 300, 6)
    x[0, :, 4] += 3
    names = [name for name, _ in figures.columns(posterior(x=x), 2)]
    assert names[0] == "theta[Phillips $x_$]" and names[-1] == "energy"
    values = dict(figures.columns(posterior(x=x), 2))["theta[Phillips $x_$]"]
    assert np.array_equal(values, x[:, :, 4])


def test_rank_counts_are_level_when_mixed():
    """400 draws of each chain in 20 bins: a relative error of .19, the bound is 5 of them."""
    x = np.random.default_rng(5).normal(size=(4, 400))
    level = figures.rank_counts(x, None)
    assert level.mean() == pytest.approx(1) and np.abs(level - 1).max() < 0.97
    assert figures.rank_counts(x, np.ones((4, 400))) == pytest.approx(level)
    x[0] += 10
    assert figures.rank_counts(x, None)[0] == pytest.approx([0] * 15 + [4] * 5)


def test_density_integrates_to_one():
    """And is that of a normal, within the 5 σ of a kernel estimate from 20 000 draws."""
    x = np.random.default_rng(6).normal(size=20_000)
    grid = np.linspace(-6, 6, 400)
    density = figures.smooth_density(x, grid, None)
    assert density.sum() * (grid[1] - grid[0]) == pytest.approx(1, abs=1e-3)
    assert density == pytest.approx(np.exp(-(grid**2) / 2) / np.sqrt(2 * np.pi), abs=0.04)
    assert np.isfinite(figures.smooth_density(np.full(10, 3.0), grid, None)).all()


def test_history_with_holes():
    rows = [{"gradients": 1, "energy": 2.0}, {"energy": 3.0}, {"gradients": 3, "energy": np.nan}]
    assert figures.curves(rows) == {}
    rows += [{"gradients": 4, "energy": 1.0, "step_size": np.ones(4), "metric": "diagonal"}]
    assert list(figures.curves(rows)) == ["energy"]
    assert figures.tuning(()) is None
