"""Runs experiments on a corpus or a file of scores, and writes their results."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path

from monitor.corpus import find
from monitor.errors import UsageError
from monitor.features.registry import AS_ENVIRONMENT, FeatureSetup
from monitor.files import list_open_files, make_folder, write_text, writing
from monitor.lab.experiment.cells import MeasuredCell, make_cells, make_orders
from monitor.lab.experiment.figures import (
    FigureSpec,
    plot_frames,
    plot_lengths,
    plot_ranks,
    plot_speaker,
    plot_speakers,
    save_figures,
)
from monitor.lab.experiment.findings import make_surfaces
from monitor.lab.experiment.material import (
    ExperimentSettings,
    Material,
    Panel,
    choose_panels,
    read_scores,
    read_speech,
)
from monitor.lab.experiment.report import KIND, Experiment, list_table_rows, make_document
from monitor.lab.report.model import Table
from monitor.lab.report.renderers import render_csv, render_html
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
    """Run SRD's experiments on a corpus into a folder, like `monitor experiment`.

    Args:
        corpus: a folder or manifest of recordings or frames, or a file of `monitor score`.
        folder: folder for the page, tables, figures, results and cache.
        settings: settings of the experiment.
        fresh: whether to clear the cache.
        jobs: number of worker processes.
        setup: source of the features.

    Raises:
        CorpusError: if there is no corpus, or too little speech in it.
        UsageError: if settings are invalid, or the folder has other contents.
        StoreError: if the folder cannot be written.
    """
    settings = settings or ExperimentSettings()
    path, output = Path(corpus), Path(folder)
    check_folder(output, path)
    material: Material | None = read_scores(path, settings)
    if material is None:
        material = read_speech(path, find(path), output / "frames", settings, jobs, setup=setup)
    panels = choose_panels(material.fills, material.offered, settings)
    return run_experiment(material, panels, output, settings, fresh=fresh, jobs=jobs)


def run_experiment(
    material: Material,
    panels: Sequence[Panel],
    folder: Path,
    settings: ExperimentSettings,
    *,
    fresh: bool = False,
    jobs: int = 1,
    progress: Callable[[MeasuredCell], object] = lambda _: None,
) -> Experiment:
    """Measure all cells and write all files; arguments and errors as in `experiment`."""
    with writing(folder):
        make_folder(folder)
    cache = ResultCache(folder / "cache", fresh=fresh)
    orders = make_orders(panels, material, settings)
    cells = make_cells(orders, material, settings, cache, jobs, progress)
    results = Experiment(material, settings, panels, cells)
    # results first, since they mark the folder as an experiment's
    write_text(json.dumps(results.plain(), allow_nan=False, indent=1), folder / "results.json")
    head = ("session", "system", "of", "figure", "value", "low", "high")
    tables = Table.from_numbers(head, list(list_table_rows(results.tables)))
    write_text(render_csv(tables), folder / "tables.csv")
    optional: list[FigureSpec | None] = [plot_frames(results.frame_counts, len(results.speakers))]
    if measured := results.tables:
        systems = results.systems
        optional += [plot_ranks(measured, systems), plot_speakers(measured, systems)]
        optional.append(plot_speaker(measured))
    optional.append(plot_lengths(make_surfaces(cells)))
    pictures = save_figures(filter(None, optional), folder)
    write_text(render_html(make_document(results, pictures)), folder / "index.html")
    return results


def check_folder(folder: Path, corpus: Path) -> None:
    """Check that a folder is empty or an experiment's.

    Raises UsageError if it has other contents, is a file, or is inside the corpus, and StoreError
    if it cannot be written.
    """
    if corpus.is_dir() and folder.resolve().is_relative_to(corpus.resolve()):
        raise UsageError(f"invalid folder {folder}: use one outside the corpus")
    if set(list_open_files(folder)) <= {"cache", "frames"}:
        return
    try:
        contents = json.loads((folder / "results.json").read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        contents = None
    if not isinstance(contents, dict) or contents.get("kind") != KIND:
        raise UsageError(
            f"invalid folder {folder}, which has other contents: use an empty folder, or one of an "
            "experiment"
        )
