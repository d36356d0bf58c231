"""monitor attack, audit and experiment: from recordings to a page, killed and gone on with."""

import csv
import json
import os
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.lab.attacks.made import results as attack_results

pytestmark = pytest.mark.slow

TINY = ("--features", "f0", "--seconds", 2, "--template", 6, "--trials", 3, "--segments", "1,2",
        "--jobs", 1)  # fmt: skip
QUICK = ({"replicates": 20, "trials": 3}, "--jobs", 1)
LENGTHS = ("--lengths", "1,10", "--template-lengths", "10")
OPTIONS = ("--lengths", "1,3", "--template", "20", {"replicates": 20}, "--jobs", "1")


@pytest.fixture
def voices(corpora: Callable[..., Path]) -> Path:
    return corpora()


def test_any_recogniser_measures_word_errors(run, voices, tmp_path):
    program = tmp_path / "asr.py"  # hears loud noise as other words
    program.write_text(
        "import io, sys, soundfile\n"
        "sound, rate = soundfile.read(io.BytesIO(sys.stdin.buffer.read()))\n"
        "step = rate // 2\n"
        "print(*(round(9 * abs(sound[i : i + step]).mean()) for i in range(0, len(sound), step)))\n"
    )
    asked = ("attack", voices, "--method", "noise:-20", *TINY, "--attackers", "ignorant")
    done = run(*asked, "-o", tmp_path / "out", "--asr-command", f"{sys.executable} {program}")
    assert done.code == 0, done.err
    measured = json.loads((tmp_path / "out" / "results.json").read_text())["measured"]
    rates = {method: figures["utility.word_error"]["value"] for method, figures in measured.items()}
    assert rates["none"] == 0.0 < rates["noise:-20"]
    assert "word error" in (tmp_path / "out" / "index.html").read_text()
    failed = run(*asked, "-o", tmp_path / "no", "--asr-command", "false")
    assert failed.code == 1
    assert "false failed with exit status 1" in failed.complaint
    assert not (tmp_path / "no").exists()


def test_one_command_tests_an_anonymiser_and_goes_on_from_what_was_heard(run, voices, tmp_path):
    out, table = tmp_path / "out", tmp_path / "table.json"
    asked = ("attack", voices, "-o", out, "--method", "noise:0", *TINY, {"scoreboard": table})
    done = run(*asked)
    assert done.code == 0, done.err
    assert "plan: less than 1 min, 1 process\n" in done.err
    names = {path.name for path in out.iterdir()}
    assert names == {"index.html", "results.json", "results.csv", "bits.svg", "bits.png", "kept"}
    for path in (out, *out.rglob("*")):
        assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0, path
    found = json.loads((out / "results.json").read_text())
    rows = found["rows"]
    assert {(r["method"], r["attacker"]) for r in rows} == {
        ("none", "ignorant"), ("noise:0", "ignorant"), ("noise:0", "lazy-informed"),
    }  # fmt: skip
    # the first thing that is said is the strongest attacker's
    worst = max(
        r["figures"]["srd.mean_bits_model"]["value"] for r in rows if r["method"] == "noise:0"
    )
    assert done.out.splitlines()[0].startswith(f"noise:0: {worst:.2f} bits")
    assert found["headline"][0].startswith(f"noise:0: {worst:.2f} bits")
    page = (out / "index.html").read_text()
    assert page.index(f"{worst:.2f} bits") < page.index("<svg")
    assert "http" not in page.replace("http://www.w3.org", "")
    with (out / "results.csv").open() as file:
        assert [line["speakers"] for line in csv.DictReader(file)] == ["6"] * len(rows)
    assert not [*tmp_path.rglob("*.wav"), *tmp_path.rglob("*.flac")]
    assert "not comparable" in done.err
    ranked = json.loads(table.read_text())["rows"]
    assert {"noise:0", "none"} == {row["name"] for row in ranked if row["speakers"] == 6}
    before = (out / "results.json").read_bytes()
    kept = {p: p.stat().st_mtime_ns for p in (out / "kept").rglob("*.result")}
    again = run(*asked)
    assert (again.code, again.out) == (0, done.out)
    assert (out / "results.json").read_bytes() == before
    assert {p: p.stat().st_mtime_ns for p in kept} == kept
    assert run(*asked, "--fresh").code == 0
    assert all(p.stat().st_mtime_ns > at for p, at in kept.items())


def test_ctrl_c_says_how_to_go_on(command, voices, tmp_path):
    arguments = [*command, "attack", voices, "-o", tmp_path / "out", *map(str, TINY),
                 "--anonymiser-command", f"sh -c 'touch {tmp_path}/begun; sleep 99'"]  # fmt: skip
    with subprocess.Popen(arguments, stderr=subprocess.PIPE, text=True) as process:
        until = time.monotonic() + 100
        while not (tmp_path / "begun").exists():
            assert time.monotonic() < until
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        err = process.communicate(timeout=60)[1]
    assert process.returncode == 130, err
    lines = [line for line in err.splitlines() if line]
    assert "run the same command again" in lines[-2]
    assert lines[-1] == "monitor: interrupted"


@pytest.fixture
def audited(run, people, tmp_path):
    path = tmp_path / "audit.html"
    done = run("audit", people, "-o", path, *OPTIONS)
    assert done.code == 0, done.err
    return done, json.loads(path.with_suffix(".json").read_text())


def test_figures_are_those_of_score_and_evaluate(run, people, audited, tmp_path):
    done, made = audited
    for lines in made["summary"].values():
        assert all(line in done.out for line in lines)
    scores = tmp_path / "scores.npz"
    asked = ("--session", "both", "--lengths", "10", "--template-lengths", "20")
    assert run("score", people, "-o", scores, *asked, "--jobs", "1").code == 0
    evaluated = run("evaluate", scores, "--json", "--replicates", 20,
                    "--among", "5,10,20,50,100,1000,10000,1000000")  # fmt: skip
    found = {each["name"]: each["figures"] for each in json.loads(evaluated.out)["systems"]}
    checked = 0
    for test in made["tests"]:
        theirs = found[test["session"]]
        for key, figure in test["figures"].items():
            for part in ("value", "low", "high"):
                assert figure[part] == theirs[key][part], (key, part)
                checked += 1
    assert checked > 100


def test_runs_and_an_attack_are_audited_too(run, population, people, tmp_path):
    logs = [tmp_path / f"{name}.jsonl" for name in ("a", "b")]
    for log, name in zip(logs, ("000003", "000005"), strict=True):
        talk = people / name / "s1.npz"
        assert run("replay", talk, "-p", population, "--watch", name, "--jsonl", log).code == 0
    path = tmp_path / "runs.html"
    assert run("audit", *logs, "-o", path, "--lengths", "5,20", "--budget", "1").code == 0
    made = json.loads(path.with_suffix(".json").read_text())
    read = []
    for log in logs:
        records = [json.loads(line) for line in log.read_text().splitlines()]
        read.append(next(r["bits"] for r in records if r["type"] == "reading" and r["speech"] >= 5))
    row = made["lengths"][0]
    assert row["mean_bits"]["value"] == pytest.approx(sum(read) / 2)
    assert row["beyond_budget"]["value"] == sum(bits >= 1 for bits in read) / 2
    folder = tmp_path / "tested"
    folder.mkdir()
    from monitor.lab.attacks.results import results_json

    (folder / "results.json").write_text(results_json(attack_results()))
    done = run("audit", folder, "-o", tmp_path / "attack.html")
    assert done.code == 0
    assert "mcadams:0.8: " in done.out


def test_a_label_of_the_same_corpus(run, people, audited, tmp_path):
    _, made = audited
    path = tmp_path / "label.md"
    assert run("audit", people, "--card", "-o", path, "--salt", "x", *OPTIONS).code == 0
    told = json.loads(path.with_suffix(".json").read_text())
    assert told["lengths"] == made["lengths"]
    assert [each["bits"] for each in told["exposed"]] == [each["bits"] for each in made["exposed"]]
    assert told["exposed"][0]["speaker"] != made["exposed"][0]["speaker"]
    again = run("audit", people, "--card", "--salt", "x", *OPTIONS)
    assert again.out == path.read_text()


def test_a_folder_becomes_a_page(run, people, tmp_path):
    out = tmp_path / "out"
    done = run("experiment", people, "-o", out, *QUICK, *LENGTHS)
    assert (done.code, done.out) == (0, "")
    assert "cross session, sweep: 12 speakers, 12 tested, 2 cells" in done.err
    assert "plan: less than 1 min to measure, 1 process\n" in done.err
    first = json.loads((out / "results.json").read_text())
    assert {cell["session"] for cell in first["cells"]} == {"cross", "same"}
    assert {cell["systems"]["f0"]["tested"] for cell in first["cells"]} == {12}
    assert first["frame_counts"]["f0"]
    assert (out / "figure4.svg").is_file()
    assert not (out / "frames").exists()  # they were ready-made
    for path in out.rglob("*"):
        assert path.stat().st_mode & 0o077 == 0
    # another experiment in the same place: who trained the network is not tested
    names = sorted(folder.name for folder in people.iterdir())[:2]
    (tmp_path / "trainers").write_text("\n".join(names))
    trained = ("--trained", f"f0={tmp_path / 'trainers'}", {"session": "same"})
    assert run("experiment", people, "-o", out, *QUICK, *LENGTHS, *trained).code == 0
    found = json.loads((out / "results.json").read_text())
    assert {(c["session"], c["systems"]["f0"]["tested"]) for c in found["cells"]} == {("same", 10)}


def test_killed_it_goes_on(command, people, tmp_path):
    out = tmp_path / "out"
    whole = [*command, "experiment", str(people), "-o", str(out), *map(str, LENGTHS)]
    running = subprocess.Popen(whole, stderr=subprocess.DEVNULL)
    until = time.monotonic() + 60
    while not list((out / "cache").glob("*.result")) and time.monotonic() < until:
        time.sleep(0.02)
    os.kill(running.pid, signal.SIGKILL)
    running.wait()
    kept = {path: path.stat().st_mtime_ns for path in (out / "cache").glob("*.result")}
    assert kept
    assert not (out / "index.html").exists()
    subprocess.run(whole, check=True, stderr=subprocess.DEVNULL)
    assert (out / "index.html").exists()
    assert {path: path.stat().st_mtime_ns for path in kept} == kept
