"""What strangers read about the project agrees, wherever it is written."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

import yaml
from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parents[1]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
PROJECT = PYPROJECT["project"]


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
