from __future__ import annotations

import csv
import io
import re
from functools import partial

import numpy as np
import pytest

from monitor.lab.evaluation.comparisons import Comparisons, ScoreMatrix
from monitor.lab.evaluation.evaluating import evaluate
from monitor.lab.evaluation.family import EvaluationSettings
from monitor.lab.evaluation.report.comparing import all_pairs, by_group
from monitor.lab.evaluation.report.document import Evaluation, pairs_csv
from monitor.lab.evaluation.report.report import main_figures
from monitor.lab.report.export import escape_latex
from tests.lab.evaluation.made import EVIL
from tests.lab.evaluation.made import report as made_report


def scored(name, lead, seed):
    target = np.repeat(np.arange(20), 4)
    own = target[:, None] == np.arange(20)
    scores = np.random.default_rng(seed).normal(size=own.shape) + lead * own
    return ScoreMatrix(scores, target, tuple(f"s{i}" for i in range(20)), name)


@pytest.fixture(scope="module")
def matrices():
    return [scored("before, 100 %", 2.5, 0), scored("McAdams_a&b", 0.5, 1)]


@pytest.fixture(scope="module")
def reports(matrices):
    return [evaluate(matrix, settings=EvaluationSettings(replicates=40)) for matrix in matrices]


@pytest.fixture(scope="module")
def parts(matrices):
    groups = {f"s{i}": "fm"[i % 2] for i in range(20)}
    return [
        by_group(
            Comparisons.all_of(matrix),
            groups,
            partial(evaluate, settings=EvaluationSettings(replicates=20)),
        )
        for matrix in matrices
    ]


def table(text):
    return list(csv.DictReader(io.StringIO(text)))


def test_csv_has_every_figure_to_its_last_digit(reports):
    rows = table(Evaluation(reports).csv())
    assert len(rows) == sum(len(report.figures) for report in reports)
    for row in rows:
        report = next(each for each in reports if each.name == row["system"])
        figure = report.figures[row["key"]]
        assert (float(row["value"]) if row["value"] else None) == figure.value
        limits = tuple(float(row[end]) if row[end] else None for end in ("low", "high"))
        assert limits == figure.limits
        assert (row["label"], row["note"], row["text"]) == (figure.label, figure.note, figure.text)
        assert row["speakers"] == "20"
    eer = [row for row in rows if row["figure"] == "eer"]
    assert [row["system"] for row in eer] == ["before, 100 %", "McAdams_a&b"]


def test_csv_has_groups_and_chosen_figures(reports, parts):
    rows = table(Evaluation(reports, parts).csv(["verification.eer_rocch"]))
    assert [row["group"] for row in rows] == ["", "f", "m", "average"] * 2
    assert {row["figure"] for row in rows} == {"eer"}


def test_csv_of_pairs(reports):
    (row,) = table(pairs_csv(all_pairs(reports, ["srd.idr"])))
    assert (row["system"], row["minus"]) == ("McAdams_a&b", "before, 100 %")
    gap = reports[1]["srd.idr"].value - reports[0]["srd.idr"].value
    assert float(row["difference"]) == pytest.approx(gap)
    assert float(row["low"]) < gap < float(row["high"])
    assert 0 < float(row["p"]) < 0.05
    assert row["paired"] == "yes"


def balanced(text):
    """What TeX would stumble over first."""
    bare = re.sub(r"\\[\\{}$&#_%]", "", text)
    depth = 0
    for letter in bare:
        depth += {"{": 1, "}": -1}.get(letter, 0)
        assert depth >= 0
    assert depth == 0
    assert bare.count("$") % 2 == 0
    outside = re.sub(r"\$[^$]*\$", "", bare)
    assert not re.search(r"[#_^~]", outside)
    assert re.findall(r"\\begin\{(\w+)\}", bare) == re.findall(r"\\end\{(\w+)\}", bare)[::-1] or (
        bare.count("\\begin{tabular}") == bare.count("\\end{tabular}")
    )


def test_latex_holds_together(reports, parts):
    text = Evaluation(reports, parts).latex(tuple(reports[0].figures))
    body = text.split("\n", 1)[1]  # after the comment
    balanced(body)
    assert body.count("\\begin{table}") == body.count("\\end{table}") == 3
    for tabular in re.findall(r"\\begin\{tabular\}\{(l r*|lr+)\}(.*?)\\end\{tabular\}", body, re.S):
        columns, rows = tabular
        lines = [line for line in rows.splitlines() if line.endswith("\\\\")]
        assert len(lines) > 50
        for line in lines:
            assert len(re.findall(r"(?<!\\)&", line)) == len(columns) - 1, line
    assert body.isascii(), "nothing that pdflatex does not know"


def test_latex_is_about_the_figures_that_matter(reports):
    text = Evaluation(reports).latex()
    assert "\\toprule" in text
    assert "Figure & before, 100 \\% & McAdams\\_a\\&b \\\\" in text
    assert len(re.findall(r"^[^%\\].*\\\\$", text, re.M)) >= len(main_figures())
    assert "D\\_ECE (bits) & " in text
    assert "\\textbf{" in text
    one = Evaluation(reports[:1]).latex(["verification.eer_rocch"])
    value = 100 * reports[0]["verification.eer_rocch"].value
    assert f"EER (convex hull) & {value:.1f}\\,\\% {{\\small [" in one


def test_names_that_are_no_good_are_escaped():
    report = made_report()
    text = Evaluation([report]).latex(tuple(report.figures))
    balanced(text.split("\n", 1)[1])
    assert escape_latex(EVIL) in text
    assert "<script>" not in text
    made = escape_latex("\\ { } $ & # _ % ^ ~ ε ≤ ε\u0302")
    assert made.isascii()
    assert made.startswith("\\textbackslash{} \\{ \\} \\$ \\& \\# \\_ \\% \\textasciicircum{}")
