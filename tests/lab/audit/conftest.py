"""Simulated speakers to audit."""

from pathlib import Path

import pytest

from benchmarks.simulation import Simulation, write_corpus
from monitor.corpus import find
from monitor.lab.audit.audit import Audit, AuditConfig
from monitor.lab.audit.auditing import ExtractedCorpus, audit_corpus, extract_corpus


@pytest.fixture(scope="session")
def crowd(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Eight simulated speakers in two sessions each, as frames, with a table that says a group."""
    folder = tmp_path_factory.mktemp("crowd") / "crowd"
    write_corpus(folder, Simulation(8, 5), 8, 2, 60.0)
    names = sorted(each.name for each in folder.iterdir())
    rows = [f"{name}/{part}.npz,spk-{name},{part},{'fm'[i % 2]}"
            for i, name in enumerate(names) for part in ("s0", "s1")]  # fmt: skip
    (folder / "manifest.csv").write_text("\n".join(["path,speaker,session,gender", *rows, ""]))
    return folder


CONFIG = AuditConfig(lengths=(1.0, 3.0, 10.0), template_seconds=20.0, replicates=20)


@pytest.fixture(scope="session")
def heard(crowd: Path) -> ExtractedCorpus:
    """Those speakers, heard."""
    return extract_corpus(find(crowd), crowd, CONFIG)


@pytest.fixture(scope="session")
def audit(heard: ExtractedCorpus) -> Audit:
    """Their audit."""
    return audit_corpus(heard, CONFIG)
