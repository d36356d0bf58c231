from __future__ import annotations

import csv
import re
from html.parser import HTMLParser
from xml.etree import ElementTree

import pytest

from monitor.lab.experiment import ExperimentSettings, experiment
from monitor.lab.experiment.figures import plot_frames
from monitor.plots.canvas import save_picture
from tests.lab.experiment.made import score_file

RANK_MODELS = {(t, d): (0.5, 1.5 + t) for t in (1.0, 3.0, 10.0) for d in (3.0, 10.0, 30.0)}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("page")
    systems = {"first": RANK_MODELS, "second": dict.fromkeys(RANK_MODELS, (0.3, 9.0))}
    scores = score_file(place / "a<b.npz", systems, ("same", "cross"), speakers=14, trials=5)
    experiment(scores, place / "out", ExperimentSettings(replicates=20))
    return place / "out"


class Reader(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.tags = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))


def data(path):
    return list(csv.DictReader(path.read_text().splitlines()))


@pytest.mark.slow
def test_the_page_stands_alone(folder):
    text = (folder / "index.html").read_text()
    reader = Reader(text)
    tags = {tag for tag, _ in reader.tags}
    assert {"script", "link", "img", "iframe"}.isdisjoint(tags)
    assert "<h1>Similarity rank disclosure of a&lt;b</h1>" in text
    for _, attributes in reader.tags:
        assert not attributes.keys() & {"src", "onload", "onclick"}
        assert attributes.get("href", "#").startswith("#")
    for heading in ("In short", "What was done", "What was found", "How to read it"):
        assert f"<h2>{heading}</h2>" in text
    assert text.count("<svg") == 4  # no frames were heard, so no figure 4
    ids = re.findall(r' id="([^"]+)"', text)
    assert len(ids) == len(set(ids))


@pytest.mark.slow
def test_every_figure_has_its_data_and_can_be_opened_elsewhere(folder):
    for name in ("figure5", "figure6", "figure7", "figure8"):
        svg = (folder / f"{name}.svg").read_text()
        assert "var(" not in svg
        root = ElementTree.fromstring(svg)
        assert root.tag == "{http://www.w3.org/2000/svg}svg"
        assert (folder / f"{name}.png").read_bytes().startswith(b"\x89PNG")
        rows = data(folder / f"{name}.csv")
        assert len(rows) >= 14


@pytest.mark.slow
def test_figure_8_has_every_cell_with_limits(folder):
    rows = data(folder / "figure8.csv")
    assert len(rows) == 2 * 2 * 9
    for row in rows:
        low, value, high = (float(row[f"meand{end}"]) for end in ("_low", "", "_high"))
        assert low <= value <= high <= float("3.81")
        assert (row["speakers"], row["tested"], row["trials"]) == ("14", "14", "70")
    first = next(row for row in rows if row["system"] == "second" and row["D"] == "30")
    assert float(first["guide_linear"]) == float(first["meand"])


def test_pitch_is_drawn_in_hertz(tmp_path):
    counts = {"f0": [0] * 104, "codes": [1, 2, 3]}
    counts["f0"][61] = 7
    drawn = plot_frames(counts, 5)
    assert drawn is not None
    assert drawn.rows[61] == ("f0", 61, 100.0, 7, 1.0)
    assert drawn.rows[-1] == ("codes", 2, None, 3, 0.5)
    assert "<svg" in save_picture(drawn.paint, tmp_path / drawn.name, drawn.title, drawn.inches)
    assert plot_frames({}, 5) is None
