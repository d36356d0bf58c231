"""Reports: what they say of a matrix, their catalogue of figures, their page and their exports."""

import copy
import csv
import io
import json
import re
import stat
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from monitor.errors import StoreError, UsageError
from monitor.lab.evaluation import lid, srd, verification, zebra
from monitor.lab.evaluation.comparisons import Comparisons, ScoreMatrix
from monitor.lab.evaluation.document import Evaluation, pairs_csv, save_page
from monitor.lab.evaluation.report import choose_figures, entries, main_figures, meaning
from monitor.lab.evaluation.resampling import leaving_out, resamples
from monitor.lab.evaluation.systems import all_pairs, by_group, compare
from monitor.lab.report.model import Columns, Picture, Section, format_limits
from monitor.lab.report.renderers import escape_latex, figure_json, render_html
from tests.lab.evaluation.made import EVIL, report
from tests.lab.evaluation.matrices import constant, leading, linkage_figures, perfect, report_of
from tests.lab.reading import read_alone


@pytest.fixture(scope="module")
def mid(golden):
    return report_of(golden.matrix("mid_eval"), golden.matrix("mid_dev"), replicates=40)


def test_it_says_what_the_families_say(golden, mid):
    matrix, dev = golden.matrix("mid_eval"), golden.matrix("mid_dev")
    weights = np.concatenate([resamples(matrix, 40), leaving_out(matrix.speakers)])
    for figure in (
        *srd.figures(matrix, weights, permutations=40),
        *lid.figures(matrix, weights, dev),
        *zebra.figures(matrix, weights),
        *verification.figures(matrix, weights),
        *linkage_figures(matrix, weights),
    ):
        found = mid[figure.key]
        assert found.value == figure.value, figure.key
        if figure.replicates is not None:
            assert np.array_equal(found.replicates, figure.replicates[:40], equal_nan=True)
        assert (found.ceiling, found.ties) == (figure.ceiling, figure.ties)
        assert found.note.startswith(figure.note.rstrip("."))


def test_json_has_no_figures_of_replicates_and_no_infinity(mid):
    text = json.dumps(mid.to_json(), allow_nan=False)
    assert mid.to_json()["draws"] == 40
    assert "replicates" not in text
    assert len(text) < 200_000
    assert figure_json(report()["membership.epsilon_nats_at_1e-2"]) == {
        "label": "epsilon", "value": None, "text": "inf", "low": None, "high": None,
        "unit": "nats", "ceiling": None, "floor": None, "ties": "", "note": "",
    }  # fmt: skip


@pytest.mark.slow
def test_the_same_seed_gives_the_same_report(golden):
    matrix = golden.matrix("weak_eval")
    first, again = (report_of(matrix, replicates=20, seed=3).to_json() for _ in range(2))
    assert first == again
    assert first != report_of(matrix, replicates=20, seed=4).to_json()


def test_small_and_odd_matrices_are_reported_as_far_as_they_go():
    one_trial = report_of(perfect(3, 1), replicates=20)
    assert any("second trial" in note for note in one_trial.notes)
    scores = np.random.default_rng(0).normal(size=(12, 4))
    one_speaker = report_of(ScoreMatrix(scores, np.zeros(12, int)), replicates=20)
    assert one_speaker.replicates == 0
    assert any("LID is omitted" in note for note in one_speaker.notes)
    flat = report_of(constant(4, 3), replicates=20)
    assert flat["srd.mean_bits"].value == pytest.approx(0.0, abs=1e-12)
    assert flat["zebra.d_ece_bits"].value == 0.0
    assert flat["verification.eer_rocch"].value == 0.5
    sure = report_of(leading(30, 6, 60.0))
    assert "to about 1 on average" in meaning(sure)[0]
    assert "nothing measurable" in meaning(report_of(leading(30, 6, 0.0)))[0]
    for each in (one_trial, one_speaker, flat, sure):
        json.dumps(each.to_json(), allow_nan=False)
    with pytest.raises(UsageError, match="give 0 or more"):
        report_of(constant(), replicates=-1)


def test_some_families_alone_say_what_they_say_among_all():
    matrix = leading(12, 5, 2.0)
    whole = report_of(matrix, replicates=20)
    some = report_of(matrix, replicates=20, only=("srd", "verification"))
    assert {key.split(".")[0] for key in some.figures} == {"srd", "verification"}
    for key, figure in some.figures.items():
        assert figure_json(figure) == figure_json(whole[key])
    with pytest.raises(UsageError, match="unknown family"):
        report_of(matrix, only=("srd", "style"))


def test_names_of_the_command_line_work_in_python():
    made = report_of(leading(12, 5, 2.0), replicates=20)
    for entry in entries():
        if entry.key in made.figures:
            assert made[entry.name] is made[entry.key] is made[entry.key.upper()]
    assert made["eer"].key == "verification.eer_nearest"
    assert made["eer_nearest"] is made["EER"] is made.eer
    assert made["eer_rocch"].key == "verification.eer_rocch"
    assert made.zebra.tag is made["tag"]
    with pytest.raises(KeyError, match="no figure 'mincllr': use min_cllr"):
        made["mincllr"]
    with pytest.raises(KeyError, match=r"no figure 'zzzz': use meand or .* or eer or eer_rocch"):
        made["zzzz"]
    with pytest.raises(AttributeError, match="no figure 'iddr': use idr"):
        made.iddr  # noqa: B018
    assert not hasattr(made, "_repr_png_")
    assert copy.deepcopy(made)["eer"].value == made["eer"].value


def test_what_a_notebook_shows_is_short():
    matrix = leading(12, 5, 2.0)
    made = report_of(matrix, replicates=200)
    several = compare([made, replace(made, name="other")])
    shown = [
        made,
        *made.figures.values(),
        several,
        several.rows[0],
        matrix,
        made.curves,
        made.usage,
    ]
    shown.append(Comparisons(matrix.speakers, matrix))
    for each in shown:
        assert "\n" not in repr(each)
        assert len(repr(each)) < 1000
    assert repr(made["eer"]) == (
        f"<Figure verification.eer_nearest: {made['eer'].shown} ({format_limits(made['eer'])})>"
    )
    page = made._repr_html_()
    read_alone(page)
    assert page.count("<tr>") == 1 + len(made.figures)
    assert "<td>IdR" in page
    hostile = replace(made, name="<script>")
    assert "<script>" not in hostile._repr_html_()


def test_figures_as_a_data_frame():
    made = report_of(leading(12, 5, 2.0), replicates=20)
    frame = made.to_pandas()
    assert frame.index.tolist() == list(made.figures)
    row, figure = frame.loc["verification.eer_nearest"], made["eer"]
    assert (row["name"], row["unit"], row["trials"]) == ("eer", "share", made.trials)
    assert (row["value"], row["low"], row["high"]) == (figure.value, figure.low, figure.high)
    assert frame.loc["zebra.tag", "text"] == made["tag"].text
    assert np.isnan(frame.loc["zebra.tag", "value"])


def test_figures_are_chosen_by_names_keys_families_and_the_main_ones():
    assert choose_figures(["eer"]) == ("verification.eer_nearest",)
    assert choose_figures(["eer_nearest"]) == ("verification.eer_nearest",)  # its name before
    assert choose_figures(["EER_ROCCH"]) == ("verification.eer_rocch",)
    assert choose_figures(["Linkage.D_sys", "d_sys"]) == ("linkage.d_sys",)
    assert choose_figures(["main"]) == main_figures()
    assert set(choose_figures(["zebra"])) == {"zebra.d_ece_bits", "zebra.log10_l", "zebra.tag"}
    assert choose_figures(["new.figure"], ["new.figure"]) == ("new.figure",)
    for name, said in (
        ("mincllr", "did you mean .*min_cllr"), ("tpr_at_1e-3", "did you mean .*tpr_1e-3"),
        ("zzzz", "unknown figure 'zzzz': see --figures help"),
    ):  # fmt: skip
        with pytest.raises(UsageError, match=said):
            choose_figures([name])


@pytest.fixture(scope="module")
def alone():
    return render_html(Evaluation([report()]).page())


@pytest.fixture(scope="module")
def several():
    reports = [report("first"), report(bits=0.4), report("third", speakers=50)]
    return render_html(Evaluation(reports).page())


@pytest.mark.slow
def test_a_page_stands_alone_and_names_are_never_markup(alone, several):
    for page in (alone, several):
        assert len(page) < 300_000
        text = read_alone(page).text
        assert "<script>alert" not in page
        assert text.count(EVIL) >= 3
        assert page.count("<svg") == 9  # that several systems share
    assert "var(--s3)" in several
    assert '<b class="differs">*</b>' in several
    assert "different numbers of speakers" in several
    text = read_alone(alone).text
    for words in ("to about 31 on average", "1,000 trials of 100 speakers", "1.510 to 1.890",
                  "27.9 %", "Where each metric misleads", "A note.", "Needs 10 trials.",
                  "On average.", "Equal scores: spread (MeanD, rank model).", "inf"):  # fmt: skip
        assert words in text, words


@pytest.mark.slow
def test_systems_are_told_apart_without_colour_and_the_finding_comes_first():
    names = ("first", "second", "third")
    document = Evaluation(
        [report(n, bits) for n, bits in zip(names, (1, 2, 3), strict=True)]
    ).page()
    assert "third" in document.headline
    shown = [block for block in document.sections if isinstance(block, Columns)]
    folded = [block for section in document.sections if isinstance(section, Section)
              for block in section.blocks if isinstance(block, Columns)]  # fmt: skip
    pictures = [each for columns in (*shown, *folded) for each in columns.blocks]
    (roc,) = [
        each for each in pictures if getattr(each, "title", "").startswith("True positives at few")
    ]
    assert isinstance(roc, Picture)
    styles = re.findall(r'style="([^"]*stroke: var\(--s[123]\)[^"]*)"', roc.svg)
    dashes = {tuple(re.findall("stroke-dasharray: [^;]*", style)) for style in styles}
    assert len(dashes) == len(names)
    assert all(f">{name}</text>" in roc.svg for name in names)  # beside the lines
    alone = Evaluation([report("first")]).page()
    assert alone.headline == meaning(report("first"))[0]


def test_it_is_written_at_once_or_not_at_all(tmp_path):
    path = tmp_path / "report.html"
    save_page([report("a")], path)
    assert path.read_text(encoding="utf-8").endswith("</html>\n")
    assert [each.name for each in tmp_path.iterdir()] == ["report.html"]
    assert stat.S_IMODE(path.stat().st_mode) & 0o400
    with pytest.raises(StoreError, match="cannot write"):
        save_page([report("a")], tmp_path / "no" / "report.html")


@pytest.fixture(scope="module")
def two():
    names = tuple(f"s{i}" for i in range(20))
    made = leading(20, 4, 2.5, 0, "before, 100 %"), leading(20, 4, 0.5, 1, "McAdams_a&b")
    return [replace(matrix, speakers=names) for matrix in made]


@pytest.fixture(scope="module")
def reports(two):
    return [report_of(matrix, replicates=40) for matrix in two]


@pytest.fixture(scope="module")
def parts(two):
    groups, how = {f"s{i}": "fm"[i % 2] for i in range(20)}, partial(report_of, replicates=20)
    return [by_group(Comparisons.all_of(matrix), groups, how) for matrix in two]


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


def test_csv_has_groups_chosen_figures_and_pairs(reports, parts):
    rows = table(Evaluation(reports, parts).csv(["verification.eer_rocch"]))
    assert [row["group"] for row in rows] == ["", "f", "m", "average"] * 2
    assert {row["figure"] for row in rows} == {"eer_rocch"}
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


def test_names_that_are_no_good_are_escaped():
    one = report()
    text = Evaluation([one]).latex(tuple(one.figures))
    balanced(text.split("\n", 1)[1])
    assert escape_latex(EVIL) in text
    assert "<script>" not in text
    made = escape_latex("\\ { } $ & # _ % ^ ~ ε ≤ ε\u0302")
    assert made.isascii()
    assert made.startswith("\\textbackslash{} \\{ \\} \\$ \\& \\# \\_ \\% \\textasciicircum{}")
