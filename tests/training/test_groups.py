"""What tables say of speakers beside their names."""

from __future__ import annotations

from pathlib import Path

import pytest

from monitor.errors import UsageError
from monitor.lab.scoring import groups_of

TABLE = "path,speaker,Gender,age\na.wav,ann,f,30\nb.wav,bob,m,31\n"


@pytest.fixture
def manifest(tmp_path: Path) -> Path:
    path = tmp_path / "manifest.csv"
    path.write_text(TABLE)
    return path


def test_gender_is_found_in_a_manifest(manifest):
    for where in (manifest, manifest.parent):
        found = groups_of(where, ["ann", "bob", "cid"])
        assert found is not None
        assert (found.name, dict(found.of)) == ("Gender", {"ann": "f", "bob": "m"})
    other = groups_of(manifest, ["ann"], column="age")
    assert other is not None
    assert (other.name, dict(other.of)) == ("age", {"ann": "30"})
    with pytest.raises(UsageError, match="has no column 'accent'"):
        groups_of(manifest, ["ann"], column="accent")


def test_where_nothing_is_said_there_is_nothing(tmp_path):
    assert groups_of(tmp_path, ["ann"]) is None
    with pytest.raises(UsageError, match="says who is of which age: give --groups"):
        groups_of(tmp_path, ["ann"], column="age")
    (tmp_path / "manifest.csv").write_text("path,speaker\na.wav,ann\n")
    assert groups_of(tmp_path, ["ann"]) is None


def test_kaldi_has_a_file_of_its_own(tmp_path):
    for name in ("wav.scp", "utt2spk"):
        (tmp_path / name).write_text("")
    assert groups_of(tmp_path, ["ann"]) is None
    (tmp_path / "spk2gender").write_text("ann f\nbob m\n")
    found = groups_of(tmp_path, ["ann", "bob"])
    assert found is not None
    assert (found.name, found.values) == ("gender", ("f", "m"))


def test_a_file_beside_the_corpus(tmp_path, manifest):
    found = groups_of(tmp_path / "frames", ["bob"], manifest, "Gender")
    assert found is not None
    assert dict(found.of) == {"bob": "m"}
