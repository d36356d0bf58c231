"""An experiment from beginning to end: plan, cells, findings, and everything that is written."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path

from monitor.corpus.finding import find
from monitor.errors import UsageError
from monitor.features.registry import AS_ENVIRONMENT, FeatureSetup
from monitor.files import held_by, write_text
from monitor.lab.experiment.cells import CellOrder, make_cells, orders_of
from monitor.lab.experiment.figures import (
    Drawn,
    draw_all,
    frames_figure,
    lengths_figure,
    one_speaker_figure,
    ranks_figure,
    save_csv,
    speakers_figure,
)
from monitor.lab.experiment.findings import findings_of, surfaces
from monitor.lab.experiment.material import (
    Material,
    hear_corpus,
    make_private,
    scores_at,
    speech_of,
)
from monitor.lab.experiment.report import KIND, Experiment, page_of, save_results, table_rows
from monitor.lab.experiment.settings import ExperimentSettings, Panel, choose_panels
from monitor.lab.result_cache import ResultCache


def experiment(
    corpus: str | os.PathLike[str],
    folder: str | os.PathLike[str],
    settings: ExperimentSettings | None = None,
    *,
    fresh: bool = False,
    jobs: int = 1,
    setup: FeatureSetup = AS_ENVIRONMENT,
) -> Experiment:
    """SRD's experiments on a corpus, written into a folder: what `monitor experiment` does.

    Args:
        corpus: a folder or manifest of recordings or of frames, or a file of `monitor score`.
        folder: for the page, tables, figures, results and what is kept for the next time.
        settings: what is asked for.
        fresh: forget what was kept.
        jobs: processes; nothing depends on it.
        setup: from where features are made.

    Raises:
        CorpusError: there is no corpus, or too little speech in it.
        UsageError: settings that make no sense, or a folder of something else.
        StoreError: the folder cannot be written.
    """
    settings = settings or ExperimentSettings()
    path, place = Path(corpus), Path(folder)
    check_folder(place, path)
    material: Material | None = scores_at(path, settings)
    problems: tuple[str, ...] = ()
    if material is None:
        found, problems = hear_corpus(
            path, find(path), place / "frames", settings.features, jobs, setup=setup
        )
        speech = speech_of(found, settings, setup)
        material, problems = speech, (*problems, *speech.problems)
    panels = panels_of(material, settings)
    return run_experiment(
        material, panels, place, settings, name=path.resolve().stem, problems=problems,
        fresh=fresh, jobs=jobs,
    )  # fmt: skip


def panels_of(material: Material, settings: ExperimentSettings) -> list[Panel]:
    """Who takes part, at which lengths.

    Raises:
        CorpusError: fewer than two speakers have enough speech.
    """
    return choose_panels(
        material.fills,
        material.offered,
        settings.sessions,
        settings.lengths,
        settings.template_lengths,
        settings.tables_at,
    )


def run_experiment(
    material: Material,
    panels: Sequence[Panel],
    folder: Path,
    settings: ExperimentSettings,
    *,
    name: str,
    problems: tuple[str, ...] = (),
    fresh: bool = False,
    jobs: int = 1,
    progress: Callable[[CellOrder], object] = lambda _: None,
) -> Experiment:
    """Make all cells of the panels, and write everything; `progress` is called with each cell.

    Arguments as of `experiment`; `name` is of the corpus, for people, `problems` what could not be
    used of it.

    Raises:
        StoreError: the folder cannot be written.
    """
    make_private(folder)
    cache = ResultCache(folder / "cache", fresh=fresh)
    orders = orders_of(panels, material, settings)
    cells = make_cells(orders, material, settings, cache, jobs, progress)
    everybody = list(dict.fromkeys(who for panel in panels for who in panel.speakers))
    found = Experiment(
        name, settings, panels, cells, findings_of(cells), material.frame_counts(everybody),
        problems, material.joins, material.noise,
    )  # fmt: skip
    _write(found, folder, len(everybody))
    return found


def check_folder(folder: Path, corpus: Path) -> None:
    """See to it that a folder is a place for an experiment: empty, or one of an experiment.

    Raises:
        UsageError: it holds something else, is a file, or lies in the corpus.
        StoreError: it cannot be written.
    """
    names = set(held_by(folder))
    if corpus.is_dir() and folder.resolve().is_relative_to(corpus.resolve()):
        raise UsageError(f"{folder} lies in the corpus itself; choose a folder outside")
    if names and not names <= {"cache", "frames"} and not _ours(folder / "results.json"):
        raise UsageError(
            f"{folder} holds something else; name an empty folder, or one of an experiment"
        )


def _ours(path: Path) -> bool:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(found, dict) and found.get("kind") == KIND


def _write(found: Experiment, folder: Path, speakers: int) -> None:
    """Results first: they mark the folder as one of an experiment."""
    save_results(found, folder / "results.json")
    head = ("session", "system", "of", "figure", "value", "low", "high")
    save_csv(folder / "tables.csv", head, table_rows(found.tables))
    wanted: list[Drawn | None] = [frames_figure(found.frame_counts, speakers)]
    if found.tables:
        wanted += [
            ranks_figure(found.tables, found.systems),
            speakers_figure(found.tables, found.systems),
            one_speaker_figure(found.tables),
        ]
    wanted.append(lengths_figure(surfaces(found.cells)))
    figures = [each for each in wanted if each is not None]
    pictures = draw_all(figures, folder)
    write_text(page_of(found, figures, pictures), folder / "index.html")
