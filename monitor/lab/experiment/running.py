"""An experiment from beginning to end: plan, cells, findings, and everything that is written."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path

from monitor.corpus import find
from monitor.errors import UsageError
from monitor.features.registry import AS_ENVIRONMENT, FeatureSetup
from monitor.files import held_by, write_text
from monitor.lab.experiment.cells import CellOrder, make_cells, make_orders
from monitor.lab.experiment.figures import (
    FigureSpec,
    plot_frames,
    plot_lengths,
    plot_ranks,
    plot_speaker,
    plot_speakers,
    save_csv,
    save_figures,
)
from monitor.lab.experiment.findings import answer_questions, make_surfaces
from monitor.lab.experiment.material import (
    Material,
    extract_frames,
    make_private,
    read_scores,
    read_speech,
)
from monitor.lab.experiment.report import (
    KIND,
    Experiment,
    list_table_rows,
    render_page,
    save_results,
)
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
    """Run SRD's experiments on a corpus into a folder, as `monitor experiment`.

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
    path, output = Path(corpus), Path(folder)
    check_folder(output, path)
    material: Material | None = read_scores(path, settings)
    problems: tuple[str, ...] = ()
    if material is None:
        frames, problems = extract_frames(
            path, find(path), output / "frames", settings.features, jobs, setup=setup
        )
        speech = read_speech(frames, settings, setup)
        material, problems = speech, (*problems, *speech.problems)
    panels = plan_panels(material, settings)
    return run_experiment(
        material, panels, output, settings, name=path.resolve().stem, problems=problems,
        fresh=fresh, jobs=jobs,
    )  # fmt: skip


def plan_panels(material: Material, settings: ExperimentSettings) -> list[Panel]:
    """Choose who takes part, at which lengths.

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
    """Measure all cells of the panels, and write everything.

    Arguments as of `experiment`; `name` is of the corpus, for people, `problems` what could not be
    used of it.

    Raises:
        StoreError: the folder cannot be written.
    """
    make_private(folder)
    cache = ResultCache(folder / "cache", fresh=fresh)
    orders = make_orders(panels, material, settings)
    cells = make_cells(orders, material, settings, cache, jobs, progress)
    everybody = list(dict.fromkeys(who for panel in panels for who in panel.speakers))
    results = Experiment(
        name, settings, panels, cells, answer_questions(cells), material.frame_counts(everybody),
        problems, material.joins, material.noise,
    )  # fmt: skip
    _write(results, folder, len(everybody))
    return results


def check_folder(folder: Path, corpus: Path) -> None:
    """Check that a folder is a place for an experiment: empty, or one of an experiment.

    Raises:
        UsageError: it holds something else, is a file, or lies in the corpus.
        StoreError: it cannot be written.
    """
    names = set(held_by(folder))
    if corpus.is_dir() and folder.resolve().is_relative_to(corpus.resolve()):
        raise UsageError(f"{folder} lies in the corpus itself; choose a folder outside")
    if names and not names <= {"cache", "frames"} and not _is_ours(folder / "results.json"):
        raise UsageError(
            f"{folder} holds something else; name an empty folder, or one of an experiment"
        )


def _is_ours(path: Path) -> bool:
    try:
        contents = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(contents, dict) and contents.get("kind") == KIND


def _write(results: Experiment, folder: Path, speakers: int) -> None:
    """Write results first: they mark the folder as one of an experiment."""
    save_results(results, folder / "results.json")
    head = ("session", "system", "of", "figure", "value", "low", "high")
    save_csv(folder / "tables.csv", head, list_table_rows(results.tables))
    optional: list[FigureSpec | None] = [plot_frames(results.frame_counts, speakers)]
    if results.tables:
        optional += [
            plot_ranks(results.tables, results.systems),
            plot_speakers(results.tables, results.systems),
            plot_speaker(results.tables),
        ]
    optional.append(plot_lengths(make_surfaces(results.cells)))
    figures = [figure for figure in optional if figure is not None]
    pictures = save_figures(figures, folder)
    write_text(render_page(results, figures, pictures), folder / "index.html")
