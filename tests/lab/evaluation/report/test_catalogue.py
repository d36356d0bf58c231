from __future__ import annotations

from collections import Counter

import pytest

from monitor.errors import UsageError
from monitor.lab.evaluation.evaluating import evaluate
from monitor.lab.evaluation.family import EvaluationSettings
from monitor.lab.evaluation.report.report import choose_figures, entries, main_figures, short_name


def test_names_are_short_and_stand_for_one_figure_each():
    assert Counter(entry.name for entry in entries()).most_common(1)[0][1] == 1
    assert Counter(entry.key for entry in entries()).most_common(1)[0][1] == 1
    assert max(len(entry.name) for entry in entries()) <= 22
    assert {entry.key for entry in entries()} >= set(main_figures())


def test_every_figure_of_a_report_has_a_name(golden):
    report = evaluate(
        golden.matrix("mid_eval"),
        golden.matrix("mid_dev"),
        settings=EvaluationSettings(replicates=5, epsilon=0.1),
    )
    assert [key for key in report.figures if short_name(key) == key] == []


def test_names_keys_families_and_the_main_ones():
    assert choose_figures(["eer"]) == ("verification.eer_rocch",)
    assert choose_figures(["Linkage.D_sys", "d_sys"]) == ("linkage.d_sys",)
    assert choose_figures(["main"]) == main_figures()
    assert set(choose_figures(["zebra"])) == {"zebra.d_ece_bits", "zebra.log10_l", "zebra.tag"}
    assert choose_figures(["new.figure"], ["new.figure"]) == ("new.figure",)


@pytest.mark.parametrize(("name", "near"), [("mincllr", "min_cllr"), ("tpr_at_1e-3", "tpr_1e-3")])
def test_an_unknown_name_gives_the_near_ones(name, near):
    with pytest.raises(UsageError, match=f"do you mean .*{near}"):
        choose_figures([name])
    with pytest.raises(UsageError, match="no figure 'zzzz': --figures help"):
        choose_figures(["zzzz"])
