"""Adding a family of metrics is adding one file and its name: a toy, and what then shows it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import monitor.lab.evaluation
from monitor.cli import cli
from monitor.lab.evaluation import family as declared
from monitor.lab.evaluation.evaluating import evaluate
from monitor.lab.evaluation.family import EvaluationSettings, families
from monitor.lab.evaluation.report.document import Evaluation
from monitor.lab.evaluation.report.report import choose_figures, meaning, short_name
from monitor.lab.report.html import render_html
from tests.lab.evaluation.matrices import chance, ends, separated

FAMILY = '''"""The declaration of the lead: a toy."""

import numpy as np

from monitor.lab.evaluation.family import Extremes, Family, FamilyResult, FigureEntry, LimitRule
from monitor.lab.report.model import Figure
from monitor.lab.plots.evaluation import Drawing, Line


def compute(context):
    pool, weights = context.pool, context.pool_weights
    people = len(pool.non_mated_counts)
    others = np.zeros(people)
    for owner, block in pool.non_mated_blocks():
        np.add.at(others, owner, block.sum(axis=1))
    own = np.bincount(pool.owner, pool.mated, people)
    counts = np.bincount(pool.owner, minlength=people), pool.non_mated_counts

    def lead(weights):
        return weights @ own / (weights @ counts[0]) - weights @ others / (weights @ counts[1])

    figure = Figure(
        "lead.mean", "mean lead", float(lead(np.ones(people))), "",
        replicates=None if weights is None else lead(weights), floor=0.0,
    )
    ends = Line(np.array([0.0, 1.0]), np.array([0.0, figure.value]))
    return FamilyResult((figure,), ("The lead is a toy.",), curves={"lead_line": ends})


def paint(axes, systems):
    for colour, each in systems:
        axes.plot(each.more["lead_line"].x, each.more["lead_line"].y, color=colour)


FAMILY = Family(
    key="lead",
    place=45,
    title="How far mated scores lead",
    caveat="A lead says nothing of its spread.",
    needs=("pool",),
    figures=(FigureEntry("lead", "lead.mean", "mean mated less mean non-mated score",
                         LimitRule("t")),),
    compute=compute,
    main=("lead.mean",),
    drawings=(Drawing("lead_line", "The lead, drawn", "A straight line.", paint),),
    meaning=lambda figures, speakers: (f"Own scores lead by {figures['lead.mean'].value:.1f}.",),
    extremes=Extremes(at_floor=("mean",), flat_at_floor=("mean",), scaled=("mean",)),
)
'''


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where the toy lies: beside the families of the package, as Python sees it."""
    (tmp_path / "lead.py").write_text(FAMILY)
    return tmp_path


@pytest.fixture
def added(folder, monkeypatch):
    monkeypatch.setattr(
        monitor.lab.evaluation, "__path__", [*monitor.lab.evaluation.__path__, str(folder)]
    )
    monkeypatch.setattr(declared, "MODULES", (*declared.MODULES, "lead"))
    yield
    sys.modules.pop("monitor.lab.evaluation.lead", None)
    vars(monitor.lab.evaluation).pop("lead", None)


def test_it_is_not_there_without_its_name():
    assert "lead" not in [family.key for family in families()]
    assert short_name("lead.mean") == "lead.mean"


@pytest.mark.slow
@pytest.mark.usefixtures("added")
def test_reports_tables_and_pages_show_it():
    first, other = (
        evaluate(separated(), settings=EvaluationSettings(replicates=40)),
        evaluate(chance(10, 5), settings=EvaluationSettings(replicates=40)),
    )
    figure = first["lead.mean"]
    low, high = ends(figure)
    assert figure.value == pytest.approx(0.6, abs=0.05)
    assert low < 0.6 < high
    keys = [key.split(".")[0] for key in first.figures]
    assert keys.index("zebra") < keys.index("lead") < keys.index("verification")
    assert "The lead is a toy." in first.notes_on(["lead.mean"])
    assert "The lead is a toy." not in first.notes_on(["zebra.tag"])
    assert f"Own scores lead by {figure.value:.1f}." in meaning(first)
    text = render_html(Evaluation([first, other]).page())
    for words in ("How far mated scores lead", "A lead says nothing of its spread.", "mean lead",
                  "The lead, drawn", "A straight line."):  # fmt: skip
        assert words in text, words
    assert choose_figures(["lead"]) == ("lead.mean",)
    assert ",lead,lead.mean,mean lead," in Evaluation([first]).csv()
    assert "mean lead" in Evaluation([first]).latex()


@pytest.mark.usefixtures("added")
def test_the_command_line_shows_it(tmp_path):
    matrix = separated()
    np.save(tmp_path / "scores.npy", matrix.scores)
    np.savetxt(tmp_path / "labels.txt", matrix.target, fmt="%d")
    listed = _printed("--figures", "help").splitlines()
    names = [line.split()[0] for line in listed if not line.startswith(" ")]
    assert names.index("tag") < names.index("lead") < names.index("eer")
    asked = _printed(tmp_path / "scores.npy", "--labels", tmp_path / "labels.txt",
                "--replicates", 20, "--figures", "lead", "--json")  # fmt: skip
    (system,) = json.loads(asked)["systems"]
    assert list(system["figures"]) == ["lead.mean"]
    assert system["figures"]["lead.mean"]["name"] == "lead"
    assert system["figures"]["lead.mean"]["trials"] == matrix.trials
    assert len(system["curves"]["lead_line"]["x"]) == 2


def _printed(*arguments: object) -> str:
    """What ``monitor evaluate`` prints."""
    done = CliRunner().invoke(cli, ["evaluate", *map(str, arguments)], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout


@pytest.mark.slow
def test_the_tests_of_properties_hold_it_to_its_extremes(folder):
    code = (
        "import sys, pytest; from monitor.lab import evaluation; "
        "evaluation.__path__.append(sys.argv[1]); "
        "from monitor.lab.evaluation import family; family.MODULES += ('lead',); "
        "options = ['-q', '--all', '-p', 'no:cacheprovider', '-k', 'lead']; "
        "sys.exit(pytest.main([*options, sys.argv[2]]))"
    )
    tests = Path(__file__).with_name("test_properties.py")
    root = Path(__file__).resolve().parents[3]
    done = subprocess.run([sys.executable, "-c", code, str(folder), str(tests)], cwd=root,
                          capture_output=True, text=True, check=False)  # fmt: skip
    assert done.returncode == 0, done.stdout
    assert int(done.stdout.split(" passed")[0].split()[-1]) > 10
    # declared to stay where scores are rescaled, it is caught
    wrong = FAMILY.replace('scaled=("mean",)', 'monotone=("mean",)')
    (folder / "lead.py").write_text(wrong)
    done = subprocess.run([sys.executable, "-c", code, str(folder), str(tests)], cwd=root,
                          capture_output=True, text=True, check=False)  # fmt: skip
    assert done.returncode == 1
    assert "test_only_comparisons_count_over_all_rows[lead" in done.stdout
