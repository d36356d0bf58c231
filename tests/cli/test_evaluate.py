from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
from rich.cells import cell_len

from tests.lab.evaluation import kits
from tests.lab.evaluation.lists import speechbrain_eer, voice_privacy
from tests.lab.experiment.made import RankModels, score_file


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Scores of three systems (strong, weak, random) on the same speakers, and their labels."""
    path = tmp_path_factory.mktemp("scores")
    target = np.repeat(np.arange(20), 5)
    (path / "labels.txt").write_text("".join(f"{column}\n" for column in target))
    own = target[:, None] == np.arange(20)
    for seed, (name, lead) in enumerate([("strong", 3.0), ("weak", 1.0), ("random", 0.0)]):
        noise = np.random.default_rng(seed).normal(size=own.shape)
        np.save(path / f"{name}.npy", (noise + lead * own).astype(np.float32))
    noise = np.random.default_rng(9).normal(size=own.shape)
    np.save(path / "dev.npy", noise + 3.0 * own)
    vectors = np.random.default_rng(3).normal(size=(20, 8))
    heard = vectors[target] + np.random.default_rng(4).normal(size=(100, 8))
    np.savez(path / "enrolled.npz", embeddings=vectors, speakers=[f"s{i}" for i in range(20)])
    np.savez(path / "heard.npz", embeddings=heard, speakers=[f"s{i}" for i in target])
    return path


@pytest.fixture
def evaluate(run, folder):
    """``monitor evaluate`` of systems by name, with labels and few draws."""

    def evaluate(*names: str, options: tuple[object, ...] = ("--replicates", 20)):
        files = [folder / f"{name}.npy" for name in names]
        return run("evaluate", *files, "--labels", folder / "labels.txt", *options)

    return evaluate


def strict(text):
    def refuse(constant):
        raise AssertionError(constant)

    return json.loads(text, parse_constant=refuse)


def test_a_table_for_people(evaluate):
    result = evaluate("strong", options=("--replicates", 20, "--all"))
    assert (result.code, result.err) == (0, "")
    assert result.out.startswith("strong: 100 trials of 20 speakers, N = 20, ceiling 4.32 bits")
    text = " ".join(result.out.split())
    for words in (
        "Of 20 people whom an attacker considers",
        "There is no dev matrix",
        "ALID, authors' code",
        "Similarity rank disclosure",
        "Local information disclosure",
        "ZEBRA",
        "Verification",
        "Linking two recordings",
        "Ranks as anonymity",
        "At few false positives",
        "95 % interval",
        "Equal scores: ",
    ):
        assert words in text, words
    assert max(map(cell_len, result.out.splitlines())) <= 80
    assert "\x1b" not in result.out


def test_a_dozen_figures_come_first(evaluate):
    lines = evaluate("strong").out.splitlines()
    (head,) = [i for i, line in enumerate(lines) if line.startswith("The figures that matter")]
    assert head <= 3
    rows = [line for line in lines[head + 1 :][:13] if re.match(r"\S.* {2,}\S", line)]
    assert len(rows) == 13
    assert rows[0].startswith("MeanD")
    assert "At few false positives (VoxGuard)" not in "".join(lines)
    assert re.fullmatch(
        r"All \d\d figures: --all\. What each one says: --figures help\.", lines[-1]
    )


@pytest.mark.slow
@pytest.mark.parametrize("columns", [50, 60, 80, 132])
@pytest.mark.parametrize("names", [("strong",), ("strong", "weak"), ("strong", "weak", "random")])
def test_the_table_fits_where_it_is_read(evaluate, monkeypatch, columns, names):
    monkeypatch.setenv("COLUMNS", str(columns))
    out = evaluate(*names, options=("--replicates", 20, "--all")).out
    assert max(map(cell_len, out.splitlines())) <= columns
    assert "4.32" in out
    assert "\N{HORIZONTAL ELLIPSIS}" not in out, "nothing is cut off"


def test_distances_are_warned_of_above_all_figures(run, folder, tmp_path):
    np.save(tmp_path / "distances.npy", -np.load(folder / "strong.npy"))
    files = (tmp_path / "distances.npy", "--labels", folder / "labels.txt", "--replicates", 5)
    warned = run("evaluate", *files).out.splitlines()[1]
    assert warned.startswith("WARNING: distances looks like distances: in 0 % of the trials")
    (system,) = strict(run("evaluate", *files, "--json").out)["systems"]
    assert len(system["warnings"]) == 1
    both = run("evaluate", *files, folder / "strong.npy").out
    assert both.index("WARNING") < both.index("The figures that matter")


def test_notes_have_room_beside_numbers_of_any_size(run, folder, tmp_path):
    np.save(tmp_path / "large.npy", 1e299 * np.load(folder / "strong.npy").astype(float))
    files = (tmp_path / "large.npy", "--labels", folder / "labels.txt")
    row = run("evaluate", *files, "--replicates", 20, "--figures", "cllr").out.splitlines()[3]
    assert row.startswith("Cllr")
    assert "e+29" in row.split()[1]
    assert row.split()[-1] == "1"


@pytest.mark.slow
def test_many_systems_are_shown_a_few_at_a_time(run, folder, tmp_path):
    files = []
    for i in range(9):
        files.append(tmp_path / f"system{i}.npy")
        files[-1].write_bytes((folder / "weak.npy").read_bytes())
    result = run("evaluate", *files, "--labels", folder / "labels.txt", "--replicates", 0)
    assert max(map(cell_len, result.out.splitlines())) <= 80
    heads = [line for line in result.out.splitlines() if line.startswith("The figures that")]
    assert len(heads) > 1
    shown = re.findall(r"system\d", " ".join(heads))
    assert shown == [f"system{i}" for i in range(9)]
    assert "\N{HORIZONTAL ELLIPSIS}" not in result.out


def test_figures_by_name(evaluate):
    lines = evaluate(
        "strong", options=("--replicates", 0, "--figures", "eer,d_ece,IDR")
    ).out.splitlines()
    rows = [line.split("  ")[0] for line in lines[3:6]]
    assert rows == ["EER (convex hull)", "D_ECE", "IdR: the right person first"]
    options = ("--replicates", 0, "--json", "--figures", "zebra,verification.eer_nearest")
    (system,) = strict(evaluate("strong", options=options).out)["systems"]
    assert [each["name"] for each in system["figures"].values()] == [
        "d_ece", "log10_l", "tag", "eer_nearest",
    ]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("systems", [["strong"], ["strong", "weak"]])
def test_only_what_concerns_the_figures_asked_for_is_said(evaluate, systems):
    of_lid, of_anonymity = "There is no dev matrix", "What was anonymised"
    for asked, said, unsaid in (
        ("eer", [], [of_lid, of_anonymity]),
        ("alid,eer", [of_lid], [of_anonymity]),
        ("anonymity", [of_anonymity], [of_lid]),
        ("main", [of_lid, of_anonymity], []),
    ):
        text = evaluate(*systems, options=("--replicates", 0, "--figures", asked)).out
        assert [words for words in (*said, *unsaid) if words in text] == said
    everything = evaluate(*systems, options=("--replicates", 0)).out
    assert of_lid in everything
    assert of_anonymity in everything


def test_a_figure_that_is_unknown(run):
    result = run("evaluate", "a.npy", "--figures", "eer,dece")
    assert result.code == 2
    assert "no figure 'dece': do you mean d_ece? --figures help has them all" in result.complaint
    assert "--figures chooses, --all shows all" in run(
        "evaluate", "a.npy", "--figures", "eer", "--all"
    ).complaint  # fmt: skip


def test_every_figure_is_explained(run, evaluate):
    lines = run("evaluate", "--figures", "help").out.splitlines()
    assert max(map(cell_len, lines)) <= 80
    said = dict(line.split(maxsplit=1) for line in lines if not line.startswith(" "))
    assert "equal error rate" in said["eer"]
    options = ("--replicates", 5, "--json", "--epsilon", 0.5)
    (system,) = strict(evaluate("strong", options=options).out)["systems"]
    assert {figure["name"] for figure in system["figures"].values()} <= set(said)


@pytest.mark.slow
def test_one_trial_a_speaker(run, tmp_path):
    noise = np.random.default_rng(1).normal(size=(30, 30))
    np.save(tmp_path / "s.npy", noise + 1.5 * np.eye(30))
    np.save(tmp_path / "l.npy", np.arange(30))
    files = (tmp_path / "s.npy", "--labels", tmp_path / "l.npy")
    result = run("evaluate", *files, "--replicates", 20, "--all", "--html", tmp_path / "s.html")
    text = " ".join(result.out.split())
    assert "1 tests" not in text
    assert "One trial a speaker: three figures estimate one mean, MeanD." in text
    counted, rank_model = (
        re.findall(rf"{name} +(\d\.\d\d)\d ", result.out)[0]
        for name in ("MeanD, counted", "MeanD, fitted rank model")
    )
    assert f"Counted ({counted})" in text
    assert f"fitted rank model ({rank_model})" in text
    assert re.search(r"MeanD of the median speaker +- ", result.out)
    assert "Not everybody discloses the same" not in (tmp_path / "s.html").read_text()


@pytest.mark.slow
def test_one_of_everything_is_in_the_singular(run, tmp_path):
    np.save(tmp_path / "s.npy", np.array([[0.9, 0.1, 0.2]]))
    np.save(tmp_path / "l.npy", np.array([0]))
    files = (tmp_path / "s.npy", "--labels", tmp_path / "l.npy")
    result = run("evaluate", *files, "--all", "--html", tmp_path / "s.html")
    assert result.out.startswith("s: 1 trial of 1 speaker, N = 3")
    for text in (result.out, (tmp_path / "s.html").read_text()):
        assert not re.search(r"\b1 (trials|speakers|tests|resamples|scores)\b", text)


def test_every_figure_as_json(evaluate):
    result = evaluate("strong", options=("--replicates", 20, "--json"))
    made = strict(result.out)
    assert made["schema"] == 1
    assert made["comparison"] is None
    (system,) = made["systems"]
    assert (system["name"], system["speakers"], system["trials"]) == ("strong", 20, 100)
    assert system["ceiling_bits"] == pytest.approx(np.log2(20))
    keys = {"name", "label", "value", "text", "low", "high", "unit", "ceiling", "floor", "ties",
            "note", "speakers", "trials"}  # fmt: skip
    for key, figure in system["figures"].items():
        assert set(figure) == keys, key
        assert re.fullmatch(r"[a-z]+(\.[a-z0-9_-]+)+", key), key
        assert figure["value"] is not None or figure["text"] or figure["note"], key
    families = {key.split(".")[0] for key in system["figures"]}
    assert families >= {
        "srd", "lid", "longitudinal", "zebra", "verification", "linkage", "anonymity", "membership"
    }  # fmt: skip
    figure = system["figures"]["srd.mean_bits_model"]
    assert figure["low"] < figure["value"] < figure["high"]
    assert not any("linkability" in key for key in system["figures"])
    assert {"ranks", "rank_models", "local_bits", "roc", "det", "ece", "heard"} <= set(
        system["curves"]
    )


def test_the_same_seed_says_the_same(evaluate):
    options = ("--replicates", 20, "--json")
    assert evaluate("weak", options=options) == evaluate("weak", options=options)
    other = evaluate("weak", options=(*options, "--seed", 1))
    assert other.out != evaluate("weak", options=options).out


@pytest.mark.slow
def test_several_systems_side_by_side(evaluate):
    options = ("--names", "before,after, none", "--all")
    result = evaluate("strong", "weak", "random", options=options)
    assert result.code == 0
    lines = result.out.splitlines()
    assert max(map(cell_len, lines)) <= 80
    (head,) = [line for line in lines if line.startswith("Verification")]
    assert head.split()[1:4] == ["before", "after", "none"]
    row = next(line for line in lines if line.startswith("EER (convex hull)"))
    assert "*" in row
    assert "\N{DEGREE SIGN}" in row
    assert "* differs from before" in " ".join(result.out.split())
    made = strict(evaluate("strong", "weak", options=("--replicates", 20, "--json")).out)
    assert made["comparison"]["reference"] == "strong"
    assert made["comparison"]["paired"] == {"strong": True, "weak": True}
    found = made["comparison"]["differences"]["verification.eer_rocch"]["weak"]
    assert found["significant"] is True
    assert 0 < found["low"] < found["value"] < found["high"]


def test_a_dev_set(evaluate, folder):
    options = (
        "--replicates",
        0,
        "--dev",
        folder / "dev.npy",
        "--dev-labels",
        folder / "labels.txt",
    )
    result = evaluate("strong", options=options)
    assert result.code == 0
    assert "There is no dev matrix" not in result.out


def test_embeddings_are_scored(run, folder):
    files = ("--trials", folder / "heard.npz", "--enrolment", folder / "enrolled.npz")
    for scoring in ("average", "max"):
        result = run("evaluate", *files, "--scoring", scoring, "--replicates", 0)
        assert result.code == 0
        assert result.out.startswith("heard: 100 trials of 20 speakers")


def test_what_was_anonymised_is_said(evaluate):
    options = ("--replicates", 0, "--query", "anonymised", "--reference", "original")
    assert "nonymised queries against original references" in evaluate("weak", options=options).out


def test_a_declared_epsilon_is_accounted_for(evaluate):
    options = ("--replicates", 0, "--json", "--epsilon", 0.5)
    (system,) = strict(evaluate("weak", options=options).out)["systems"]
    accounted = {key for key in system["figures"] if key.startswith("accounting.")}
    assert accounted
    (plain,) = strict(evaluate("weak", options=("--replicates", 0, "--json")).out)["systems"]
    assert set(system["figures"]) - set(plain["figures"]) == accounted


@pytest.mark.slow
def test_a_page(evaluate, tmp_path):
    page = tmp_path / "report.html"
    result = evaluate("strong", "weak", options=("--replicates", 20, "--html", page))
    assert result.code == 0
    assert f"the page is {page}" in " ".join(result.err.split())
    text = page.read_text(encoding="utf-8")
    assert text.startswith("<!doctype html>")
    assert text.count("<svg") == 8
    assert len(text) < 600_000
    assert [each.name for each in tmp_path.iterdir()] == ["report.html"]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ((), "give SCORES, or embeddings with --trials and --enrolment"),
        (("a.npy", "--trials", "b.npz"), "give SCORES, or embeddings"),
        (("--trials", "b.npz"), "--trials needs --enrolment"),
        (("--trials", "b.npz", "--enrolment", "c.npz", "--labels", "l"), "--labels goes with"),
        (("a.npy", "--enrolment", "c.npz"), "--enrolment goes with --trials"),
        (("a.npy", "b.npy", "--names", "one"), "--names: 1 names for 2 systems"),
        (("a.npy", "b.npy", "--names", "x,x"), "two systems have one name"),
        (("a.npy", "a.npy"), "two systems have one name"),
        (("a", "b", "c", "--labels", "l", "--labels", "m"), "--labels: give it once, or once for"),
        (("a.npy", "--dev-labels", "l"), "--dev-labels goes with --dev"),
        (("a.npy", "--query", "original"), "--query and --reference go together"),
        (("a.npy", "--html", "a.npy"), "let the name end in .html"),
        (("a.npy", "--delta", "0"), "Invalid value for '--delta'"),
        (("a.npy", "--epsilon", "-1"), "Invalid value for '--epsilon'"),
    ],
)
def test_wrong_usage(run, options, words):
    result = run("evaluate", *options)
    assert (result.code, result.out) == (2, "")
    assert words in result.complaint


def test_inputs_that_cannot_be_read(run, evaluate, folder, tmp_path):
    assert run("evaluate", tmp_path / "no.npy").code == 1
    result = run("evaluate", folder / "strong.npy")
    assert result.code == 2
    assert "does not say who spoke" in result.complaint
    scores = np.load(folder / "strong.npy")
    scores[3, 1] = np.nan
    np.save(tmp_path / "nan.npy", scores)
    result = run("evaluate", tmp_path / "nan.npy", "--labels", folder / "labels.txt")
    assert result.code == 2
    assert "not a finite number" in result.complaint


def test_the_inputs_are_never_written_over(run, folder, tmp_path):
    held = tmp_path / "labels.html"
    held.write_text((folder / "labels.txt").read_text())
    result = run("evaluate", folder / "weak.npy", "--labels", held, "--html", held)
    assert result.code == 2
    assert held.read_text() == (folder / "labels.txt").read_text()
    result = run("evaluate", folder / "weak.npy", "--html", tmp_path / "no" / "a.html")
    assert result.code == 1


@pytest.mark.slow
def test_on_a_terminal(terminal, folder):
    arguments = ("evaluate", folder / "weak.npy", "--labels", folder / "labels.txt")
    code, shown, err = terminal(*arguments, "--replicates", 20)
    assert code == 0
    plain = re.sub(r"\x1b\[[0-9;]*m", "", shown)
    assert max(map(cell_len, plain.splitlines())) <= 100
    assert "The figures that matter" in plain
    assert err == ""


@pytest.mark.slow
def test_impostors_and_several_enrolments(run, tmp_path):
    listed = voice_privacy(tmp_path)
    files = (listed.scores, "--labels", listed.key, "--replicates", 10)
    result = run("evaluate", *files)
    assert result.out.startswith("scores: 704 trials of 15 speakers and 314 without a target, N")
    text = " ".join(result.out.split())
    assert "14,566 non-target comparisons (4,710 of these of 314 trials without a" in text
    (system,) = strict(run("evaluate", *files, "--json", "--figures", "eer_nearest").out)["systems"]
    official = speechbrain_eer(listed.mated, listed.others)
    assert system["figures"]["verification.eer_nearest"]["value"] == pytest.approx(official)
    assert system["comparisons"]["impostor"] == 4710
    assert "have no mated score" in run("evaluate", *files, "--unmated", "refuse").complaint
    owners = tmp_path / "models"
    owners.write_text("".join(f"{1000 + i} s{i // 2}\n" for i in range(15)))
    result = run("evaluate", *files, "--enrolment-labels", owners, "--scoring", "max")
    assert "is a target of one enrolment of speaker s0 and not of another" in result.complaint


@pytest.mark.slow
def test_groups(run, evaluate, folder, tmp_path):
    genders = tmp_path / "spk2gender"
    genders.write_text("".join(f"{i} {'fm'[i % 2]}\n" for i in range(20)))
    options = ("--replicates", 20, "--groups", genders)
    result = evaluate("strong", options=(*options, "--html", tmp_path / "g.html"))
    text = " ".join(result.out.split())
    assert "strong, group by group Each group by itself" in text
    (head,) = [
        line for line in result.out.splitlines() if line.split()[-4:-1] == ["f", "m", "average"]
    ]
    assert head.startswith("The figures that matter")
    assert max(map(cell_len, result.out.splitlines())) <= 80
    assert "strong, group by group" in (tmp_path / "g.html").read_text()
    made = strict(evaluate("strong", "weak", options=(*options, "--json")).out)["groups"]
    assert set(made) == {"strong", "weak"}
    found = made["weak"]
    values = [found["groups"][g]["figures"]["srd.idr"]["value"] for g in "fm"]
    assert found["average"]["srd.idr"]["value"] == pytest.approx(np.mean(values))
    assert found["groups"]["f"]["speakers"] == 10
    assert "--group-by goes with --groups" in run("evaluate", "a", "--group-by", "x").complaint


@pytest.mark.slow
def test_exports_into_files(run, evaluate, folder, tmp_path):
    """--csv and --latex alone print; with a name they write a new file, beside what is printed."""
    few = ("--replicates", 20)
    printed = {kind: evaluate("strong", "weak", options=(*few, f"--{kind}")).out
               for kind in ("csv", "latex")}  # fmt: skip
    files = tmp_path / "all.csv", tmp_path / "table.tex"
    told = evaluate("strong", "weak", options=("--csv", files[0], "--latex", files[1], *few))
    assert told.code == 0
    assert [path.read_text() for path in files] == list(printed.values())
    assert all(path.stat().st_mode & 0o777 == 0o600 for path in files)
    assert "EER" in told.out  # the table for people as well
    assert all(str(path) in told.err for path in files)
    assert (
        "systems" in evaluate("strong", options=(*few, "--json", f"--csv={tmp_path / 'b.csv'}")).out
    )
    # nothing is overwritten, least of all an input that stands behind the option
    again = evaluate("strong", options=("--csv", files[0], *few))
    assert again.code == 2
    assert f"--csv {files[0]} exists" in again.complaint
    assert files[0].read_text() == printed["csv"]
    first = run("evaluate", "--csv", folder / "strong.npy", "--labels", folder / "labels.txt", *few)
    assert first.out.startswith("system,group,figure")
    wrong = evaluate("strong", options=("--latex=table.txt", *few))
    assert wrong.code == 2
    assert ".tex" in wrong.complaint


@pytest.mark.slow
def test_exports(run, evaluate, tmp_path):
    rows = evaluate("strong", "weak", options=("--replicates", 20, "--csv")).out.splitlines()
    assert rows[0].startswith("system,group,figure,key,label,value,text,low,high,unit,")
    assert any(
        row.startswith("weak,,eer,verification.eer_rocch,EER (convex hull),") for row in rows
    )
    latex = evaluate(
        "strong", "weak", options=("--replicates", 20, "--latex", "--figures", "eer")
    ).out
    assert "EER (convex hull) & " in latex
    assert "IdR" not in latex
    options = ("--replicates", 100, "--pairs")
    result = evaluate("strong", "weak", "random", options=(*options, "--html", tmp_path / "p.html"))
    assert max(map(cell_len, result.out.splitlines())) <= 80
    text = " ".join(result.out.split())
    assert (
        "for all 3 pairs of a figure together in 95 % of cases, and p is that of one pair times 3"
        in text
    )
    assert re.search(r"random − weak +-?\d", result.out)
    assert "Differences of all pairs" in (tmp_path / "p.html").read_text()
    made = strict(evaluate("strong", "weak", "random", options=(*options, "--json")).out)["pairs"]
    assert [(pair["first"], pair["other"]) for pair in made] == [
        ("strong", "weak"), ("strong", "random"), ("weak", "random"),
    ]  # fmt: skip
    assert made[0]["differences"]["srd.idr"]["p"] <= 0.05
    rows = evaluate("strong", "weak", options=(*options, "--csv")).out.splitlines()
    assert rows[0] == "system,minus,figure,difference,low,high,p,paired"
    for wrong, words in (
        (("a", "--pairs"), "--pairs: give several systems"),
        (("a", "--csv", "--json"), "--json, --csv and --latex: give one of them"),
    ):
        assert words in run("evaluate", *wrong).complaint


@pytest.mark.slow
def test_among_more_people_every_form_and_the_bracket(evaluate, tmp_path):
    page = tmp_path / "page.html"
    options = ("--replicates", 20, "--among", "1e4,100", "--html", page)
    out = evaluate("strong", options=options).out
    text = " ".join(out.split())
    for words in (
        "Among more people than were scored",
        "IdR among 10,000 unsupported",
        "IdR among 10,000, Pitman-Yor",
        "MeanD among 100, beta-binomial",
        "not supported by 20 enrolled: more than 10 times as many",
        "Among 10,000 people the right one would come first in",
    ):
        assert words in text, words
    assert text.index("IdR among 100 ") < text.index("IdR among 10,000 ")
    assert max(map(cell_len, out.splitlines())) <= 80
    written = page.read_text(encoding="utf-8")
    assert 'aria-label="Among more people than were scored"' in written
    assert "IdR among 10,000, logit in ln N" in written
    assert "Far beyond the people who were scored" in written


@pytest.mark.slow
def test_among_more_people_for_other_programs(evaluate):
    options = ("--replicates", 20, "--among", "1e4", "--figures", "among")
    (system,) = strict(evaluate("strong", options=(*options, "--json")).out)["systems"]
    found = system["figures"]
    assert found["among.idr_10000"]["text"] == "unsupported"
    assert found["among.idr_10000"]["value"] is None
    forms = [found[f"among.idr_{name}_10000"]
             for name in ("beta_binomial", "probit", "logit", "pitman_yor")]  # fmt: skip
    assert found["among.idr_10000"]["low"] == min(form["low"] for form in forms)
    assert set(found) == {key for key in found if key.startswith("among.")}
    assert set(system["curves"]["crowd"]) >= {"measured", "forms", "bracket", "supported"}
    csv = evaluate("strong", "weak", options=(*options, "--csv")).out.splitlines()
    assert len([line for line in csv if ",among.idr_10000," in line]) == 2
    latex = evaluate("strong", options=("--replicates", 20, "--among", "1e4", "--latex")).out
    assert "IdR among 10,000 & unsupported {\\small [" in latex
    both = evaluate("strong", "weak", options=("--replicates", 20, "--among", "1e4")).out
    assert "IdR among 10,000" in both


@pytest.mark.slow
def test_among_is_for_groups_too(run, evaluate, folder, tmp_path):
    groups = tmp_path / "groups"
    groups.write_text("".join(f"{i} {'fm'[i % 2]}\n" for i in range(20)))
    options = ("--replicates", 10, "--among", "1e3", "--groups", groups, "--json")
    found = strict(evaluate("strong", options=options).out)["groups"]["strong"]["groups"]
    assert found["f"]["figures"]["among.idr_1000"]["text"] == "unsupported"


@pytest.mark.parametrize(
    ("among", "said"),
    [
        ("1", "1 is no size of a crowd: give whole numbers of people from 2 to"),
        ("1e4,0", "0 is no size of a crowd"),
        ("nan", "nan is no size of a crowd"),
        ("2.5", "2.5 is no size of a crowd"),
        ("1e11", "1e+11 is no size of a crowd"),
        ("many", "'many' is not a list of people such as 1e4,1e6"),
        ("", "'' is not a list of people"),
    ],
)
def test_what_is_no_number_of_people_is_said_in_one_line(evaluate, among, said):
    result = evaluate("strong", options=("--among", among))
    assert (result.code, result.out) == (2, "")
    assert said in result.err
    assert len(result.err.strip().splitlines()) == 1


def test_figures_among_need_a_number_of_people(run, evaluate):
    result = evaluate("strong", options=("--figures", "among"))
    assert result.code == 2
    assert "goes with --among, such as --among 1e4,1e6" in result.err
    assert "among.idr_M" in run("evaluate", "--figures", "help").out


@pytest.mark.slow
@pytest.mark.parametrize("columns", [50, 60, 80])
def test_the_brackets_fit_where_they_are_read(evaluate, monkeypatch, columns):
    monkeypatch.setenv("COLUMNS", str(columns))
    for names in (("strong",), ("strong", "weak")):
        out = evaluate(*names, options=("--replicates", 10, "--among", "1e10")).out
        assert max(map(cell_len, out.splitlines())) <= columns
        assert "10,000,000,000" in out


@pytest.mark.slow
def test_a_joint_below_its_best_part_is_told_wherever_both_stand(run, tmp_path):
    place = (10.0, 30.0)
    rank_models = {"f0": (0.9, 3.0), "voice": (0.5, 12.0), "joint": (0.6, 7.0)}
    systems: dict[str, RankModels] = {
        name: {place: rank_model} for name, rank_model in rank_models.items()
    }
    path = score_file(tmp_path / "scores.npz", systems)
    told = " ".join(run("evaluate", path, "--replicates", 20).out.split())
    assert re.search(r"joint gives \d\.\d\d bits, voice alone \d\.\d\d: go by voice", told)
    html = tmp_path / "page.html"
    assert run("evaluate", path, "--replicates", 20, "--html", html).code == 0
    assert "go by voice, as an attacker would" in html.read_text()
    made = run("experiment", path, "-o", tmp_path / "out", "--replicates", 20)
    assert made.code == 0, made.err
    assert "go by voice, as an attacker would" in (tmp_path / "out" / "index.html").read_text()
    better = score_file(tmp_path / "better.npz", {**systems, "joint": {place: (0.4, 16.0)}})
    assert "go by" not in run("evaluate", better, "--replicates", 20).out


def test_a_validation_is_a_document_with_its_figures_beside_it(evaluate, tmp_path):
    path = tmp_path / "valid.html"
    told = ("--h1", "the same", "--criteria", "cllr<=0.9,devpav<0.0001", "--replicates", 20)
    result = evaluate("strong", options=("--validation", path, *told))
    assert result.code == 0
    assert "the document is" in result.err
    lines = [line.split() for line in result.out.splitlines()]
    (row,) = [line for line in lines if line[:1] == ["Cllr"] and line[1] != "cal"]
    assert row[-3:] == ["<=0.9", "met", "bits"]
    assert "--h2, --relevant-population, --case." in " ".join(result.out.split())
    assert max(map(cell_len, result.out.splitlines())) <= 80
    made = strict((tmp_path / "valid.json").read_text())
    (system,) = made["systems"]
    assert made["statement"]["criteria"] == ["cllr <= 0.9", "devpav < 0.0001"]
    assert len(made["sources"]) == 2
    assert system["figures"]["cllr"]["criteria"] == {"cllr <= 0.9": True}
    assert (tmp_path / "valid.csv").read_text().startswith("system,by,part,measure")
    assert "<svg" in path.read_text()
    high = system["figures"]["cllr"]["high"]
    close = (system["figures"]["cllr"]["value"] + high) / 2
    near = ("--criteria", f"cllr<={close:.4f}", "--replicates", 20)
    words = " ".join(evaluate("strong", options=("--validation", path, *near)).out.split())
    assert f"is met, but the interval reaches {high:.3f}: more speakers would decide" in words
    assert "EER and min Cllr are of the calibrated ratios" in words
    again = evaluate("strong", options=("--validation", path, "--replicates", 0))
    assert again.code == 0


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--validation", "v.txt"), "let the name end in .html"),
        (("--validation", "v.html", "--json"), "leave out --json"),
        (("--validation", "v.html", "--criteria", "x<1"), "give a measure"),
        (("--validation", "no/v.html"), "there is no folder"),
        (("--h1", "text"), "go with --validation"),
        (("--validation", "v.html", "--conditions", "labels.txt"), "a trial and its condition"),
        (("--validation", "taken.html"), "exists; name another file"),
    ],
)
def test_a_validation_that_cannot_be_is_refused(
    evaluate, folder, tmp_path, monkeypatch, options, words
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "taken.csv").write_text("mine")
    (tmp_path / "labels.txt").write_bytes((folder / "labels.txt").read_bytes())
    result = evaluate("strong", options=options)
    assert words in result.complaint
    assert (tmp_path / "taken.csv").read_text() == "mine"
    assert not (tmp_path / "v.html").exists()


def test_a_validation_by_length_of_a_score_file(run, tmp_path):
    laws = {(3.0, 30.0): (2.0, 9.0), (10.0, 30.0): (1.0, 30.0)}
    scores = score_file(tmp_path / "scores.npz", {"voice": laws}, speakers=20, trials=4)
    result = run("evaluate", scores, "--validation", tmp_path / "v.html", "--replicates", 0)
    assert result.code == 0, result.err
    made = strict((tmp_path / "v.json").read_text())
    short, long = made["systems"]
    assert [each["facts"]["T"] for each in (short, long)] == ["3 s", "10 s"]
    assert short["figures"]["cllr"]["value"] > long["figures"]["cllr"]["value"]
    page = (tmp_path / "v.html").read_text()
    assert page.index("By length") < page.index("Tippett plot")
    assert page.count("<svg") == 11


def test_voice_privacy_results_are_evaluated_as_they_lie(run, tmp_path):
    path = kits.kit(tmp_path / "kit", 6.0)
    result = run("evaluate", path, "--choose", "aa,f", "--replicates", 30)
    assert result.code == 0, result.err
    text = " ".join(result.out.split())
    assert "WARNING: the attacker looks undertrained: of clear libri_dev f" in text
    lines = result.out.splitlines()
    (head,) = [i for i, line in enumerate(lines) if line.startswith("The figures that matter")]
    assert lines[head + 1].startswith("EER (nearest threshold)")
    assert " to " in lines[head + 1]
    assert "Anonymised queries against anonymised references" in text
    made = strict(run("evaluate", path, "--replicates", 0, "--json").out)
    assert [each["name"] for each in made["systems"]] == [
        "f oo", "f oa", "f aa", "m oo", "m oa", "m aa"
    ]  # fmt: skip
    assert [len(each["warnings"]) for each in made["systems"]] == [0, 1, 1, 0, 1, 1]
    moved = (tmp_path / "kit" / "data").rename(tmp_path / "lists")
    again = run("evaluate", path, "--choose", "oo,f", "--replicates", 0, "--json",
                "--data", moved)  # fmt: skip
    (system,) = strict(again.out)["systems"]
    assert system["figures"] == made["systems"][0]["figures"]
    valid = run("evaluate", path, "--choose", "oo,f", "--replicates", 0, "--data", moved,
                "--validation", tmp_path / "v.html")  # fmt: skip
    assert valid.code == 0, valid.err


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ((".",), "without cosine_out/emb_xvect"),
        (("kit", "--choose", "zz"), "has no zz; it has libri_dev f oo oa mcadams aa m"),
        (("kit", "--labels", "labels.txt"), "leave out the labels"),
        (("strong.npy", "--data", "."), "--data goes with folders"),
    ],
)
def test_voice_privacy_results_that_make_no_sense_are_one_line(
    run, folder, tmp_path, options, words
):
    path = kits.kit(tmp_path)
    where = {"kit": path, ".": tmp_path, "strong.npy": folder / "strong.npy",
             "labels.txt": folder / "labels.txt"}  # fmt: skip
    result = run("evaluate", *(where.get(each, each) for each in options))
    assert result.code == 2
    assert words in result.complaint
