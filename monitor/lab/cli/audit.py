"""monitor audit: one document of what recordings disclose of the people who speak in them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from monitor.cli.help import HelpCommand
from monitor.cli.options import (
    CrowdSizes,
    JobOptions,
    Names,
    NumberOfBits,
    argument,
    check_outputs,
    feature_setup,
    group,
    option,
    progress_over,
    say,
    setting,
    with_options,
)
from monitor.errors import UsageError
from monitor.lab.cli import MeasureOptions
from monitor.run import INCOMPLETE

if TYPE_CHECKING:
    from monitor.lab.audit.audit import Audit, AuditConfig
    from monitor.virtual_files import Readable


@dataclass(frozen=True, slots=True)
class AuditOptions:
    """Options of the command."""

    sources: tuple[Path, ...] = argument("CORPUS|RUN.jsonl...|DIR", nargs=-1, required=True)
    output: Path | None = option(
        "-o, --output FILE.html|.md",
        "The document, with FILE.csv and FILE.json beside it (mode 0600). With --card, the card "
        "FILE.md and FILE.json. [default: standard output with --card]",
    )
    card: bool = option(
        "--card", "Write a card for a speech dataset's page instead, on what its voices disclose."
    )
    budget: float = option(
        "--budget BITS", "Bits that one person's speech may disclose.",
        type=NumberOfBits(), default="6",
    )  # fmt: skip
    salt: str = option(
        "--salt TEXT",
        "Salt of the hashes that replace speakers' names. Without it, anyone with the list of "
        "speakers can find the most exposed.",
        default="",
    )
    replace: bool = option("--replace", "Overwrite the files if they exist.")
    measuring: MeasureOptions = group(MeasureOptions, "Options")
    template: float | None = option(
        "--template S",
        "Enrolled speech per person, rounded down to 5 s. [default: 60, or what half of the "
        "people have]",
        minimum=5.0,
    )
    rank_model: Path | None = setting(
        "rank-model FILE",
        "Rank model for weights and bits, from `monitor calibrate -o model.npz`. [default: the "
        "shipped one]",
    )
    attributes: tuple[str, ...] | None = option(
        "--attributes NAME[,NAME]",
        "Attributes to test, as columns of manifest.csv or two ranges of numbers, such as "
        "'age<16'. [default: gender, accent and age, if present]",
        type=Names(),
    )
    groups: Path | None = option(
        "--groups FILE", "Table of the attributes. [default: manifest.csv of CORPUS]"
    )
    among: tuple[int, ...] = option(
        "--among M", "Size of the crowd for singling out.", type=CrowdSizes(), default="1e6"
    )
    workers: JobOptions = group(JobOptions, "Processes")

    def config(self, files: Sequence[Readable] = ()) -> AuditConfig:
        """Return the library's settings."""
        from monitor.lab.audit.audit import DEFAULTS, AuditConfig

        measuring = self.measuring
        return AuditConfig(
            self.budget, self.among[0], measuring.lengths or DEFAULTS.lengths, self.template,
            measuring.features, self.attributes, self.groups, self.rank_model,
            measuring.replicates, measuring.seed, self.workers.for_recordings(files),
            feature_setup(),
        )  # fmt: skip


@click.command("audit", cls=HelpCommand, short_help="Report what recordings disclose.")
@with_options(AuditOptions)
def command(options: AuditOptions) -> int:
    """Report what recordings disclose of the people who speak in them, as one document.

    \b
    monitor audit calls/ -o audit.html --budget 6      recordings by speaker
    monitor audit day1.jsonl day2.jsonl -o audit.html  runs with --watch

    \b
    monitor audit tested -o audit.html                 results of monitor attack
    monitor audit corpus/ --card -o card.md            a public card without names

    Singling out, linkability and inference (WP216) each have their figures, with 95 % intervals.
    The document also shows how long one person's speech stays under a budget, and the most exposed
    people (by hash). It describes the sound conditions and lists untested attacks. It needs no
    network and prints well. A card adds the uniqueness of a voice in growing crowds and the
    attributes that voices disclose. Keep its --salt secret.

    The document gives no verdict. Whether data are anonymous is a question of law, about all means
    reasonably likely to be used. A low figure bounds only the attackers tried. Broken files are
    skipped and named (exit status 4).
    """
    from monitor.lab.audit.audit import summarise
    from monitor.lab.audit.document import (
        TITLES,
        label_markdown,
        make_label,
        save_audit,
        save_label,
    )

    if len(options.among) != 1:
        raise UsageError("--among: name one crowd, such as 1e6")
    if options.card and len(options.sources) > 1:
        raise UsageError("--card describes one corpus: give its folder, or its manifest")
    output, suffix = options.output, ".md" if options.card else ".html"
    if output is None and not options.card:
        raise UsageError("an audit needs an output file: add -o FILE.html")
    if output is not None:
        if output.suffix.lower() != suffix:
            raise UsageError(f"-o {output.name}: let the name {'of a card ' * options.card}end in "
                             f"{suffix}")  # fmt: skip
        endings = (".json",) if options.card else (".csv", ".json")
        check_outputs([output, *map(output.with_suffix, endings)], replace=options.replace)
    audit = _audit_folder(options) if options.card else _audit(options)
    if not options.card:
        for area, lines in summarise(audit).items():
            say(TITLES[area], err=False)
            say(*(f"  {line}" for line in lines), err=False)
    say(*(f"monitor: note: {problem}" for problem in audit.problems))
    if output is None:
        click.echo(label_markdown(make_label(audit, options.salt)), nl=False)
    elif options.card:
        figures = save_label(make_label(audit, options.salt), output)
        say(f"{output} is the card, and {figures.name} has its figures")
    else:
        table, figures = save_audit(audit, output, options.salt)
        say(f"{output} is the report, and {table.name} and {figures.name} have its figures")
    return INCOMPLETE if audit.kind == "corpus" and audit.skipped else 0


def _audit(options: AuditOptions) -> Audit:
    from monitor.corpus.folders import is_data_set
    from monitor.events.schema import read_run
    from monitor.lab.attacks.results import read_results
    from monitor.lab.audit.auditing import audit_attack, audit_runs

    sources = options.sources
    runs = [p for p in sources if p.suffix.lower() in (".jsonl", ".ndjson") and not is_data_set(p)]
    if runs:
        if len(runs) < len(sources):
            raise UsageError(
                "give runs (RUN.jsonl) alone, without a corpus or the folder of an attack"
            )
        return audit_runs([(path.name, read_run(path)) for path in runs], options.config())
    if len(sources) > 1:
        raise UsageError(
            f"{len(sources)} sources: give one corpus, or one folder of an attack, or runs"
        )
    if sources[0].name == "results.json" or (sources[0] / "results.json").is_file():
        return audit_attack(read_results(sources[0]), options.config())
    return _audit_folder(options)


def _audit_folder(options: AuditOptions) -> Audit:
    from monitor.cli.inputs import load_speaker_model, plan_of
    from monitor.lab.audit.auditing import audit_corpus, extract_corpus

    path = options.workers.path(options.sources[0])
    corpus = options.measuring.corpus_options.find(path)
    files = [recording.path for recording in corpus.recordings]
    config = options.config(files)
    say(*plan_of(corpus))
    load_speaker_model(config.features, files)
    with progress_over(len(files), "listening") as step:
        extracted = extract_corpus(corpus, path, config, lambda progress: step(progress.speaker, 1))
    with progress_over(extracted.steps, "testing") as step:
        return audit_corpus(extracted, config, lambda what: step(what, 1))
