"""monitor evaluate: tables that fit, figures by name, options that reach the report, files."""

import json
import re

import numpy as np
import pytest
from rich.cells import cell_len

from monitor.lab.evaluation.family import families
from monitor.lab.evaluation.verification import NEAREST
from tests.lab.evaluation import kits


@pytest.fixture
def evaluate(run, scores):
    """``monitor evaluate`` of systems by name, with labels and few draws."""

    def evaluate(*names: str, options: tuple[object, ...] = ("--replicates", 20)):
        files = [scores / f"{name}.npy" for name in names]
        return run("evaluate", *files, "--labels", scores / "labels.txt", *options)

    return evaluate


def strict(text):
    def refuse(constant):
        raise AssertionError(constant)

    return json.loads(text, parse_constant=refuse)


def test_a_dozen_figures_come_first(evaluate):
    result = evaluate("strong")
    assert (result.code, result.err) == (0, "")
    assert result.out.startswith("strong: 100 trials of 20 speakers, N = 20, ceiling 4.32 bits")
    assert "\x1b" not in result.out
    assert "MeanD" in result.out
    assert "At few false positives (VoxGuard)" not in result.out
    every = ("--replicates", 20, "--figures", "all")
    text = " ".join(evaluate("strong", options=every).out.split())
    for words in (
        *("There is no dev matrix", "Verification", "Similarity rank disclosure", "ZEBRA"),
        *("Linking two recordings", "At few false positives", "95 % interval"),
    ):
        assert words in text, words


def test_figures_by_name_and_what_each_says(run, evaluate):
    asked = ("--replicates", 0, "--figures", "eer,d_ece,IDR")
    rows = [line.split("  ")[0] for line in evaluate("strong", options=asked).out.splitlines()]
    assert rows[3:6] == ["EER (nearest threshold)", "D_ECE", "IdR: the correct person first"]
    options = ("--replicates", 0, "--json", "--figures", "zebra,eer_nearest")
    (system,) = strict(evaluate("strong", options=options).out)["systems"]
    assert [each["name"] for each in system["figures"].values()] == [
        "d_ece", "log10_l", "tag", "eer",
    ]  # fmt: skip
    lines = run("evaluate", "--figures", "help").out.splitlines()
    said = dict(line.split(maxsplit=1) for line in lines if not line.startswith(" "))
    assert "nearest threshold (VoicePrivacy)" in said["eer"]
    assert "convex hull" in said["eer_rocch"]
    everything = evaluate("strong", options=("--replicates", 5, "--json", "--epsilon", 0.5)).out
    (system,) = strict(everything)["systems"]
    assert {figure["name"] for figure in system["figures"].values()} <= set(said)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--dev", "dev.npy", "--dev-labels", "labels.txt"), ""),
        (({"query": "anonymised", "reference": "original"},),
         "nonymised queries against original references"),
        (("--epsilon", 0.5, "--figures", "accounting"), "psilon"),
        (("--among", "1e4,100", "--figures", "among"),
         "not supported by 20 enrolled people (the crowd is more than 10 times as large"),
        (("--groups", "groups"), "weak, group by group Each group's trials"),
    ],
)  # fmt: skip
def test_an_option_reaches_the_report(evaluate, scores, tmp_path, monkeypatch, options, said):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "labels.txt").symlink_to(scores / "labels.txt")
    (tmp_path / "dev.npy").symlink_to(scores / "strong.npy")
    (tmp_path / "groups").write_text("".join(f"{i} {'fm'[i % 2]}\n" for i in range(20)))
    result = evaluate("weak", options=("--replicates", 10, *options))
    assert result.code == 0, result.err
    assert said in " ".join(result.out.split())
    has_note = options[0] != "--dev" and "--figures" not in options
    assert ("There is no dev matrix" in result.out) == has_note


@pytest.mark.slow
def test_several_systems_side_by_side_on_a_page_and_for_other_programs(evaluate, tmp_path):
    groups, page = tmp_path / "spk2gender", tmp_path / "report.html"
    groups.write_text("".join(f"{i} {'fm'[i % 2]}\n" for i in range(20)))
    asked = ("--replicates", 20, "--among", "1e4", "--pairs")
    options = (*asked, "--names", "before,after, none", "--html", page, "--groups", groups)
    result = evaluate("strong", "weak", "random", options=options)
    assert result.code == 0
    assert max(map(cell_len, result.out.splitlines())) <= 80
    assert "* differs from before" in " ".join(result.out.split())
    assert re.search(r"none − after +-?\d", result.out)
    written = page.read_text(encoding="utf-8")
    assert written.startswith("<!doctype html>")
    for words in ("group by group", "Differences of all pairs", "IdR among 10,000, logit in ln N"):
        assert words in written
    made = strict(evaluate("strong", "weak", options=(*asked, "--json", "--groups", groups)).out)
    assert made["comparison"]["reference"] == "strong"
    assert made["comparison"]["paired"] == {"strong": True, "weak": True}
    found = made["comparison"]["differences"]["verification.eer_rocch"]["weak"]
    assert found["significant"] is True
    assert 0 < found["low"] < found["value"] < found["high"]
    assert [(pair["first"], pair["other"]) for pair in made["pairs"]] == [("strong", "weak")]
    weak = made["groups"]["weak"]
    values = [weak["groups"][g]["figures"]["srd.idr"]["value"] for g in "fm"]
    assert weak["average"]["srd.idr"]["value"] == pytest.approx(np.mean(values))
    among = weak["groups"]["f"]["figures"]["among.idr_10000"]
    assert (among["text"], among["value"]) == ("unsupported", None)


@pytest.mark.slow
def test_exports_into_files(run, evaluate, scores, tmp_path):
    """--csv and --latex alone print; with a name they write a new file, beside what is printed."""
    few = ("--replicates", 20)
    printed = {kind: evaluate("strong", "weak", options=(*few, f"--{kind}")).out
               for kind in ("csv", "latex")}  # fmt: skip
    files = tmp_path / "all.csv", tmp_path / "table.tex"
    told = evaluate("strong", "weak", options=("--csv", files[0], "--latex", files[1], *few))
    assert told.code == 0
    assert [path.read_text() for path in files] == list(printed.values())
    assert all(path.stat().st_mode & 0o777 == 0o600 for path in files)
    # nothing is overwritten, least of all an input that stands behind the option
    again = evaluate("strong", options=("--csv", files[0], *few))
    assert again.code == 2
    assert f"--csv {files[0]} exists" in again.complaint
    assert files[0].read_text() == printed["csv"]
    first = run("evaluate", "--csv", scores / "strong.npy", "--labels", scores / "labels.txt", *few)
    assert first.out.startswith("system,group,figure")


def test_embeddings_are_scored(run, tmp_path):
    target, vectors = np.repeat(np.arange(20), 5), np.random.default_rng(3).normal(size=(20, 8))
    heard = vectors[target] + np.random.default_rng(4).normal(size=(100, 8))
    for name, own, who in (("enrolled", vectors, range(20)), ("heard", heard, target)):
        np.savez(tmp_path / f"{name}.npz", embeddings=own, speakers=[f"s{i}" for i in who])
    files = ("--trials", tmp_path / "heard.npz", "--enrolment", tmp_path / "enrolled.npz")
    for scoring in ("average", "max"):
        result = run("evaluate", *files, "--scoring", scoring, "--replicates", 0)
        assert result.code == 0
        assert result.out.startswith("heard: 100 trials of 20 speakers")
    others = np.random.default_rng(5).normal(size=(120, 8))
    np.savez(tmp_path / "c.npz", embeddings=others, speakers=[f"o{i}" for i in range(120)])
    options = {"normalise": "as", "cohort": str(tmp_path / "c.npz")}
    result = run("evaluate", *files, options, "--replicates", 0, "--json")
    (report,) = strict(result.out)["systems"]
    (note,) = [note for note in report["notes"] if "normalised" in note]
    assert note == "scores are normalised (as-norm) by 120 speakers of c.npz"


def test_finished_scores_cannot_be_normalised(evaluate, tmp_path):
    refused = evaluate("strong", options=({"normalise": "as", "cohort": str(tmp_path)},))
    assert refused.code == 2
    assert "normalise needs embeddings (--trials, --enrolment and cohort)" in refused.complaint


def test_a_validation_is_a_document_with_its_figures_beside_it(evaluate, tmp_path):
    path = tmp_path / "valid.html"
    told = ({"h1": "the same"}, "--criteria", "cllr<=0.9,devpav<0.0001", "--replicates", 20)
    result = evaluate("strong", options=("--validation", path, *told))
    assert result.code == 0
    lines = [line.split() for line in result.out.splitlines()]
    (row,) = [line for line in lines if line[:1] == ["Cllr"] and line[1] != "cal"]
    assert row[-3:] == ["<=0.9", "met", "bits"]
    made = strict((tmp_path / "valid.json").read_text())
    (system,) = made["systems"]
    assert made["statement"]["criteria"] == ["cllr <= 0.9", "devpav < 0.0001"]
    assert len(made["sources"]) == 2
    assert system["figures"]["cllr"]["criteria"] == {"cllr <= 0.9": True}
    assert (tmp_path / "valid.csv").read_text().startswith("system,by,part,measure")
    assert "<svg" in path.read_text()


def test_voice_privacy_results_are_evaluated_as_they_lie(run, tmp_path):
    path = kits.kit(tmp_path / "kit", 6.0)
    result = run("evaluate", path, "--choose", "aa,f", "--replicates", 30)
    assert result.code == 0, result.err
    text = " ".join(result.out.split())
    assert "WARNING: the attacker looks undertrained:" in text
    assert "Anonymised queries against anonymised references" in text
    made = strict(run("evaluate", path, "--replicates", 0, "--json").out)
    assert [each["name"] for each in made["systems"]] == [
        "f oo", "f oa", "f aa", "m oo", "m oa", "m aa"
    ]  # fmt: skip
    moved = (tmp_path / "kit" / "data").rename(tmp_path / "lists")
    asked = ("evaluate", path, "--choose", "oo,f", "--replicates", 0, "--data", moved)
    (system,) = strict(run(*asked, "--json").out)["systems"]
    assert system["figures"] == made["systems"][0]["figures"]
    assert run(*asked, "--validation", tmp_path / "v.html").code == 0


def test_the_table_of_the_challenge(run, tmp_path):
    path = kits.kit(tmp_path / "kit")
    result = run("evaluate", path, path.parent / "asv_orig", "--voiceprivacy")
    assert result.code == 0, result.err
    anonymised, clear = result.out.split("\n\n")
    assert anonymised.startswith("---- ASV_eval^anon results ----\n")
    assert clear.startswith("---- ASV_eval results ----\n")
    rows = [line.split() for line in anonymised.splitlines()[1:]]
    assert rows[0] == ["dataset", "split", "gender", "enrollment", "trial", "EER"]
    assert {tuple(row[:5]) for row in rows[1:]} == {
        ("libri", "dev", gender, *sides)
        for gender in "fm"
        for sides in (("original", "original"), ("original", "anon"), ("anon", "anon"))
    }
    made = strict(run("evaluate", path, "--replicates", 0, "--json").out)
    rates = {each["name"]: each["figures"][NEAREST]["value"] for each in made["systems"]}
    name = {"original": "o", "anon": "a"}
    for _, _, gender, enrolment, trial, rate in rows[1:]:
        same = rates[f"{gender} {name[enrolment]}{name[trial]}"]
        assert float(rate) == pytest.approx(100 * same, abs=1e-3)


def test_mixed_lists_are_also_split_by_gender(run, tmp_path):
    enrolled, trials = kits.readers()
    kits.lists(tmp_path, "libri_dev", enrolled, {"mixed": trials})
    results = tmp_path / "exp" / "asv_orig"
    vectors = kits.drawn([*enrolled, *trials], 3.0)
    for each in vectors:  # women and men differ, so that pairs of both are easy to tell apart
        vectors[each] = vectors[each] + 5.0 * (int(each.split("-")[0]) < 1006)
    kits.cached(results, "libri_dev_enrolls", enrolled, vectors, means=True)
    kits.cached(results, "libri_dev_trials_mixed", trials, vectors)
    printed = run("evaluate", results, "--voiceprivacy").out
    rates = {line.split()[2]: float(line.split()[-1]) for line in printed.splitlines()[2:]}
    assert list(rates) == ["mixed", "f", "m", "cross"]
    assert rates["cross"] < rates["mixed"] < max(rates["f"], rates["m"])


def test_embeddings_of_signs_alone_are_marked(run, tmp_path):
    """As the kit of 2026 divided them before September."""
    enrolled, trials = kits.readers()
    kits.lists(tmp_path, "libri_dev", enrolled, {"mixed": trials})
    results = tmp_path / "exp" / "asv_ssl"
    vectors = kits.drawn([*enrolled, *trials], 3.0)
    kits.cached(results, "libri_dev_enrolls", enrolled, vectors, means=True)
    for lost in (False, True):
        written = {name: np.sign(vector) if lost else vector for name, vector in vectors.items()}
        kits.cached(results, "libri_dev_trials_mixed", trials, written)
        for options in ((), ("--voiceprivacy",)):
            done = run("evaluate", results, "--replicates", 0, *options)
            assert ("all numbers are 1 or -1" in f"{done.out}{done.err}") is lost


@pytest.mark.parametrize("word", ["help", "bibtex"])
def test_lists_of_figures_go_alone(run, word):
    result = run("evaluate", "--figures", f"eer,{word}")
    assert result.code == 2
    assert f"--figures {word} prints no figures" in result.complaint


def test_every_metric_has_a_paper_to_cite(run):
    result = run("evaluate", "--figures", "bibtex")
    assert result.code == 0, result.err
    heads = [line for line in result.out.splitlines() if line.startswith("% ")]
    assert [head[2:].partition(": ")[0] for head in heads] == [f.title for f in families()]
    entries = [line for line in result.out.splitlines() if line.startswith("@")]
    assert len({entry.partition(",")[0] for entry in entries}) == len(entries) >= 10
    assert result.out.splitlines()[-1] in entries
    for line in entries:
        assert line.count("{") == line.count("}")
        assert re.fullmatch(r"@\w+\{\w+, author=\{.+\}, title=\{.+\}.*, year=\{\d{4}\}.*\}", line)
