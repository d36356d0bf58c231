"""One EER everywhere: plain EER is the nearest threshold's, and the hull's has its own label."""

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from monitor.lab.attacks.attributes import AttributeRow, judge_attribute
from monitor.lab.attacks.report import tabulate_attributes, tabulate_enrolment, tabulate_main
from monitor.lab.attacks.results import read_results, results_json
from monitor.lab.audit.audit import summarise
from monitor.lab.audit.auditing import audit_attack
from monitor.lab.audit.document import make_document
from monitor.lab.evaluation.comparisons import ScoreMatrix
from monitor.lab.evaluation.validation import Criterion, validate
from monitor.lab.evaluation.verification import eer
from monitor.lab.experiment.cells import MeasuredCell, measure
from monitor.lab.experiment.material import Panel
from monitor.lab.experiment.report import list_table_rows, tabulate_disclosure
from monitor.lab.report.model import Document, Figure, Section, Table
from tests.lab.attacks.made import results

ROOT = Path(__file__).parents[2]
NEAREST, HULL = "verification.eer_nearest", "verification.eer_rocch"
_ENDS_WITH_LABEL = re.compile(r"\bEER[\s:=(]*$")


def matrix(speakers: int = 12, trials: int = 2) -> ScoreMatrix:
    """Tied scores, of which the two rules make two rates."""
    generator = np.random.default_rng(3)
    target = np.repeat(np.arange(speakers), trials)
    scores = generator.standard_normal((target.size, speakers))
    scores[np.arange(target.size), target] += 1.0
    return ScoreMatrix(scores.round(), target, tuple(f"s{i}" for i in range(speakers)), "made")


def both_rates(scores: ScoreMatrix) -> tuple[float, float]:
    own = scores.target[:, None] == np.arange(scores.population)
    mated, others = scores.scores[own], scores.scores[~own]
    nearest, hull = eer(mated, others), eer(mated, others, "rocch")
    assert abs(nearest - hull) > 0.005
    return nearest, hull


def tables(document: Document) -> Iterator[Table]:
    """All tables of a document, however deep."""
    waiting: list[object] = [*document.sections]
    while waiting:
        block = waiting.pop()
        if isinstance(block, Table):
            yield block
        elif isinstance(block, Section):
            waiting += block.blocks
        elif isinstance(block, list | tuple):
            waiting += block


def titles(table: Table) -> list[str]:
    return [column.title for column in table.columns]


def columns(table: Table, title: str) -> list[Figure]:
    at = titles(table).index(title)
    cells = [row[at] for row in table.rows]
    assert all(isinstance(cell, Figure) for cell in cells)
    return cells  # type: ignore[return-value]


def test_a_validation_has_both_and_a_criterion_on_eer_is_on_the_nearest():
    scores = matrix()
    nearest, hull = both_rates(scores)
    figures = validate(scores, llr="e", replicates=0).total.figures
    assert figures["eer"].value == pytest.approx(nearest)
    assert figures["eer_rocch"].value == pytest.approx(hull)
    assert (figures["eer"].label, figures["eer_rocch"].label) == ("EER", "EER (convex hull)")
    assert Criterion.parse("eer_rocch<=0.3").name == "eer_rocch"
    calibrated = validate(scores, replicates=0)  # by folds: it adds the rate of the scores
    assert any(f"EER {100 * nearest:.1f} %" in note for note in calibrated.notes)


def test_an_experiment_has_the_nearest_in_its_table_and_both_in_its_data():
    scores = matrix()
    nearest, hull = both_rates(scores)
    panel = Panel("tables", "cross", scores.speakers, scores.speakers, (1.0,), (1.0,))
    cell = MeasuredCell(panel, 1.0, 1.0, {"f0": measure(scores, 20, 0, tables=True)})
    (shown,) = [row[2] for row in tabulate_disclosure(cell).rows if row[1] == "EER"]
    assert isinstance(shown, Figure)
    assert shown.value == pytest.approx(nearest)
    data = {row[3]: row[4] for row in list_table_rows([cell])}
    assert data[NEAREST] == pytest.approx(nearest)
    assert data[HULL] == pytest.approx(hull)


def test_an_attack_and_its_audit_have_the_nearest():
    made = results()
    assert {cell.key for cell in columns(tabulate_main(made), "EER")} == {NEAREST}
    cells = [str(cell) for row in tabulate_enrolment(made).rows for cell in row if "|" in str(cell)]
    assert cells
    assert all(cell.startswith("27.0 |") for cell in cells)
    audit = audit_attack(made)
    (linked,) = [t for t in tables(make_document(audit)) if "EER" in titles(t)]
    assert {cell.key for cell in columns(linked, "EER")} == {NEAREST}
    assert {cell.key for cell in columns(linked, "EER (convex hull)")} == {HULL}
    assert all("EER of 27.0 % (22.0 to 33.0 %)" in line for line in summarise(audit)["linkability"])


def test_results_of_an_earlier_version_have_the_hulls_under_its_own_label(tmp_path):
    contents = json.loads(results_json(results()))
    for row in contents["rows"]:
        del row["figures"][NEAREST]
    generator = np.random.default_rng(0)
    whose = np.repeat([f"r{i}" for i in range(20)], 3).tolist()
    has = {f"r{i}": i < 10 for i in range(20)}
    scores = generator.standard_normal(60) + np.repeat([1.0, 0.0], 30)
    judgement = judge_attribute(scores, whose, has, replicates=20)
    mated, others = scores[:30], scores[30:]
    assert (judgement.eer, judgement.eer_rocch) == (eer(mated, others), eer(mated, others, "rocch"))
    assert judgement.eer_low <= judgement.eer <= judgement.eer_high
    row = AttributeRow("none", "ignorant", "voice", "F", "relaxed", True, 10.0, 10, 10, judgement)
    assert tabulate_attributes([row]).columns[5].title == "EER"
    old = {name: value for name, value in row.encode().items() if name != "eer_rocch"}
    contents["attributes"] = {"gender": [old]}
    (tmp_path / "results.json").write_text(json.dumps(contents))
    audit = audit_attack(read_results(tmp_path))
    every = [*tables(make_document(audit))]
    assert not any("EER" in titles(table) for table in every)
    for table in (t for t in every if "EER (convex hull)" in titles(t)):
        assert {cell.key for cell in columns(table, "EER (convex hull)")} == {HULL}
    said = summarise(audit)
    for line in (*said["linkability"], *said["inference"]):
        assert "EER (convex hull) of " in line


def labels_of_the_hull(source: str) -> list[str]:
    """Texts that end with a plain EER, as a label does, in code that reads the hull's rate."""
    tree = ast.parse(source)
    texts = [node.value for node in ast.walk(tree)
             if isinstance(node, ast.Constant) and isinstance(node.value, str)]  # fmt: skip
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    if not ("HULL" in names or any("rocch" in text for text in texts)):
        return []
    return [text for text in texts if _ENDS_WITH_LABEL.search(text)]


def test_no_code_that_reads_the_hulls_rate_has_a_plain_eer_for_a_label():
    assert labels_of_the_hull('COLUMNS = {"verification.eer_rocch": "EER"}')
    assert labels_of_the_hull('print(f"first {x}  EER {figures[HULL].value}")')
    here = ROOT / "monitor" / "lab" / "evaluation" / "verification.py"  # where labels are made
    files = [path for room in ("monitor", "benchmarks", "recipes", "examples")
             for path in (ROOT / room).rglob("*.py") if path != here]  # fmt: skip
    assert len(files) > 300
    found = {str(path.relative_to(ROOT)): labels for path in files
             if (labels := labels_of_the_hull(path.read_text("utf-8")))}  # fmt: skip
    assert not found
