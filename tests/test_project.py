"""What strangers read about the project agrees, wherever it is written."""

import json
import re
import shutil
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.requirements import Requirement

from docs.check import NAMING, write_address
from monitor import tables
from monitor.plots import canvas
from monitor.transcripts import formats
from monitor.version import __version__

ROOT = Path(__file__).resolve().parents[1]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
PROJECT = PYPROJECT["project"]
CHECKS, RELEASE = (ROOT / ".github" / "workflows" / f"{n}.yml" for n in ("checks", "release"))


def read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def test_name_authors_and_papers_are_the_same_in_every_description():
    cited, described = yaml.safe_load(read("CITATION.cff")), json.loads(read("codemeta.json"))
    authors = [each["name"] for each in PROJECT["authors"]]
    assert authors == [each["name"] for each in cited["authors"]]
    assert authors == [each["name"] for each in described["author"]]
    assert all(f"Copyright (c) 2026 {author}" in read("LICENSE") for author in authors)
    assert PROJECT["description"] == cited["abstract"] == described["description"]
    assert described["identifier"] == PROJECT["name"]
    assert set(described["keywords"]) == set(cited["keywords"]) == set(PROJECT["keywords"])
    papers = {each["title"]: each["identifiers"][0]["value"] for each in cited["references"]}
    assert len(papers) == 5
    assert papers == {p["name"]: p["identifier"] for p in described["referencePublication"]}
    linked = {url for name, url in PROJECT["urls"].items() if name.startswith("Paper ")}
    assert linked == {f"https://arxiv.org/abs/{each.split(':')[1]}" for each in papers.values()}


def test_the_address_of_the_repository_is_the_same_wherever_it_is_named():
    addresses = {
        json.loads(read("codemeta.json")).get("codeRepository"),
        yaml.safe_load(read("CITATION.cff")).get("repository-code"),
        PROJECT["urls"].get("Repository"),
    }
    assert len(addresses) == 1, addresses  # None until there is one
    assert all(re.fullmatch(r"https://[\w.-]+/[\w./-]+", url or "https://a/b") for url in addresses)


def test_one_edit_sets_the_address_of_the_repository():
    pages = {path: path.read_text(encoding="utf-8") for path in NAMING}
    assert write_address(pages, "") == pages
    address = "https://github.com/voices/speaker-disclosure-monitor"
    made = write_address(pages, address)
    assert write_address(made, address) == made
    codemeta, citation, ci = made.values()
    assert json.loads(codemeta)["codeRepository"] == address
    assert yaml.safe_load(citation)["repository-code"] == address
    assert f"repo: {address}\n" in ci
    assert "uses: voices/speaker-disclosure-monitor@" in ci


def test_the_lock_holds_an_allowed_version_of_every_dependency_of_the_demo_by_hash():
    text = re.sub(r"#.*\n", "", read("demo.lock")).replace("\\\n", "")
    locked: dict[str, list[str]] = {}
    for line in text.splitlines():
        pin, *hashes = line.split(" --hash=")
        assert hashes
        assert all(re.fullmatch(r"sha256:[\da-f]{64} *", each) for each in hashes), pin
        requirement = Requirement(pin)
        (version,) = requirement.specifier
        assert version.operator == "=="
        locked.setdefault(requirement.name, []).append(version.version)
    wanted = map(Requirement, [*PROJECT["dependencies"], *PYPROJECT["build-system"]["requires"]])
    assert not [w for w in wanted if not all(map(w.specifier.contains, locked.get(w.name, ["0"])))]
    assert "://" not in text


def jobs(workflow: Path) -> dict[str, dict[str, Any]]:
    return dict(yaml.safe_load(workflow.read_text("utf-8"))["jobs"])


def test_a_pull_request_runs_the_first_stage_and_may_write_nothing():
    workflow = yaml.safe_load(CHECKS.read_text("utf-8"))
    assert "pull_request" in workflow[True]  # YAML 1.1 reads `on` as true
    assert workflow["permissions"] == {"contents": "read"}
    (job,) = jobs(CHECKS).values()
    assert [step["run"] for step in job["steps"] if "run" in step] == [".ci/run --first"]
    lowest, highest = sorted(job["strategy"]["matrix"]["python"])
    versions = [c.rpartition(" ")[2] for c in PROJECT["classifiers"] if " 3." in c]
    assert (lowest, highest) == (versions[0], versions[-1])


def test_a_release_is_published_without_a_token_by_a_job_that_runs_nothing_of_ours():
    for workflow in (CHECKS, RELEASE):
        steps = [step for job in jobs(workflow).values() for step in job["steps"]]
        uses = [step["uses"] for step in steps if "uses" in step]
        assert all(re.search(r"@[\da-f]{40}$", each) for each in uses)
        assert "secrets." not in workflow.read_text("utf-8")
    allowed = {name: job.get("permissions", {}) for name, job in jobs(RELEASE).items()}
    assert allowed == {"build": {}, "publish": {"id-token": "write"}}
    publish = jobs(RELEASE)["publish"]
    assert not [step for step in publish["steps"] if "run" in step or "checkout" in step["uses"]]
    assert publish["steps"][-1]["with"]["attestations"] is True


@pytest.fixture
def release(tmp_path, monkeypatch):
    """Run .ci/release in a repository that has what it reads before it builds."""
    for name in (".ci/release", "monitor/version.py", "CHANGELOG.md", "pyproject.toml"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    for name in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{name}_NAME", "A. Maintainer")
        monkeypatch.setenv(f"GIT_{name}_EMAIL", "maintainer@example.org")

    def git(*arguments: str) -> None:
        subprocess.run(["git", *arguments], cwd=tmp_path, check=True, capture_output=True)

    def refusal(*arguments: str) -> str:
        done = subprocess.run(
            [".ci/release", *arguments], cwd=tmp_path, check=False, capture_output=True, text=True
        )
        assert done.returncode == 2, done.stderr
        return done.stderr

    git("init", "-q")
    git("add", "-A")
    git("commit", "-qm", "First")
    return git, refusal


@pytest.mark.slow
def test_only_an_annotated_tag_in_the_named_repository_is_released(release):
    git, refusal = release
    version, address = f"v{__version__}", "https://example.org/monitor"
    assert f"no tag {version}" in refusal("--tagged", address)
    git("tag", version)
    assert "lightweight" in refusal("--tagged", address)
    git("tag", "-f", "-a", version, "-m", "Version")
    assert f'lacks Repository = "{address}"' in refusal("--tagged", address)
    assert "exists" in refusal("--tag")
    assert "invalid option --publish" in refusal("--publish")


def test_every_issue_form_is_complete_and_a_bug_asks_for_consent():
    folder = ROOT / ".github" / "ISSUE_TEMPLATE"
    forms = {p.stem: yaml.safe_load(p.read_text("utf-8")) for p in folder.glob("*.yml")}
    assert forms.pop("config") == {"blank_issues_enabled": False}
    for form in forms.values():
        assert {"name", "description", "body"} <= form.keys()
        fields = [each for each in form["body"] if each["type"] != "markdown"]
        assert len({each["id"] for each in fields}) == len(fields)
        assert any(each.get("validations", {}).get("required") for each in fields)
    (consent,) = (each for each in forms["bug"]["body"] if each["type"] == "checkboxes")
    assert consent["attributes"]["options"][0]["required"] is True


def test_a_good_first_issue_is_still_open():
    table = read("CONTRIBUTING.md").partition("## Good first issues\n")[2].partition("\n## ")[0]
    open_ones = {
        ".webp": canvas.SUFFIXES, ".feather": tables.SUFFIXES, ".sbv": formats.SUFFIXES,
        "macOS": CHECKS.read_text("utf-8"),
    }  # fmt: skip
    for task, done in open_ones.items():
        assert (task in table) == (task.lower() not in done), task
    for name, file in re.findall(r"`(\w+)` in `([\w/.]+)`", table):
        assert re.search(rf"^{name}(:.*)? = ", read(file), re.MULTILINE), (name, file)


CONDA = {
    "matplotlib": "matplotlib-base", "sounddevice": "python-sounddevice",
    "soundfile": "pysoundfile", "soxr": "soxr-python", "webrtcvad-wheels": "webrtcvad",
}  # fmt: skip
"""Names on conda-forge that differ."""


def test_the_conda_recipe_is_the_package():
    recipe = yaml.safe_load(read("conda/recipe.yaml"))
    context, about = recipe["context"], recipe["about"]
    assert context["version"] == __version__
    assert PROJECT["requires-python"] == f">={context['python_min']}"
    assert recipe["package"]["name"] == PROJECT["name"]
    assert (about["summary"], about["license"]) == (PROJECT["description"], PROJECT["license"])
    assert about["license_file"] == PROJECT["license-files"]
    scripts = [f"{name} = {target}" for name, target in PROJECT["scripts"].items()]
    assert recipe["build"]["python"]["entry_points"] == scripts
    needs = map(Requirement, PROJECT["dependencies"])
    wanted = {CONDA.get(each.name, each.name): str(each.specifier) for each in needs}
    wanted["webrtcvad"] = ">=2.0.10"
    _, *run = (each.split(" ") for each in recipe["requirements"]["run"])
    assert dict(run) == wanted
    assert PYPROJECT["build-system"]["requires"] == ["hatchling>=1.28"]
    assert "hatchling >=1.28" in recipe["requirements"]["host"]


def test_the_paper_cites_every_source_once_and_the_five_papers_by_the_same_identifiers():
    front, body = read("paper/paper.md").split("---\n", 2)[1:]
    entries = dict(re.findall(r"@\w+\{(\w+),(.*?)\n\}", read("paper/paper.bib"), re.DOTALL))
    assert set(re.findall(r"\[@(\w+)\]", body)) == entries.keys()
    assert [each["name"] for each in yaml.safe_load(front)["authors"]] == [
        each["name"] for each in PROJECT["authors"]
    ]
    identifiers = {f"arXiv:{found}" for found in re.findall(r"eprint = \{([\d.]+)\}", str(entries))}
    cited = yaml.safe_load(read("CITATION.cff"))["references"]
    assert {each["identifiers"][0]["value"] for each in cited} <= identifiers
    assert 600 <= len(body.split()) <= 1000
