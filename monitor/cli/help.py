"""Help of a command: short by default, under headings; ``--help-all`` explains every option."""

from __future__ import annotations

import re
from typing import Any

import click

RARE = frozenset(
    (
        *("--rank-model", "--template-seconds", "--enrolled-prior", "--bystanders", "--word-list"),
        *("--speaker-model", "--horizon", "--protect-seed", "--turns-delay", "--scheduler"),
        *("--ledger-every", "--web-token", "--raw", "--speaker-in-transcript", "--allow-overlap"),
        *("--reconnect", "--bell", "--no-bell", "--alert-for", "--trained", "--replicates"),
        *("--seed", "--trials", "--cohort", "--no-prior", "--similarity", "--delta"),
        *("--command-timeout", "--salt", "--top", "--step", "--lengths"),
        *("--template-lengths", "--groups", "--criteria", "--enrolment-labels", "--dev-labels"),
        *("--epsilon", "--pairs", "--figures", "--choose", "--scoring"),
    )
)
"""Options that few people need: they stand under ``--help-all`` alone."""
FULL = "monitor.help_all"
_END = re.compile(r"[.!?] (?=[A-Z`'\"])|; |: (?=\w+ \w+ \w+)")
_TAIL = re.compile(r"\s*((?:\[[^\[\]]*(?:\[[^\]]*\][^\[\]]*)*\]\s*)+)$")


class HelpCommand(click.Command):
    """A command whose ``--help`` is short, with options under the headings of their groups."""

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self.params.append(
            click.Option(
                ["--help-all"],
                is_flag=True,
                is_eager=True,
                expose_value=False,
                callback=_print_all,
                help="Explain every option in full.",
            )
        )

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options, a heading a group; rare ones only where all are asked for."""
        full = ctx.meta.get(FULL, False)
        headings = getattr(self.callback, "headings", {})
        sections: dict[str, list[tuple[str, str]]] = {}
        for param in self.get_params(ctx):
            if isinstance(param, click.Argument) or (not full and RARE.intersection(param.opts)):
                continue
            if record := param.get_help_record(ctx):
                text = record[1] if full else first_sentence(record[1])
                heading = headings.get(param.name, "Options")
                sections.setdefault(heading, []).append((record[0], text))
        for heading, rows in sorted(sections.items(), key=lambda section: section[0] == "Options"):
            with formatter.section(heading):
                formatter.write_dl(rows, col_max=26)


def first_sentence(text: str) -> str:
    """Return the first sentence of an option's help, and its default.

    Example:
        >>> first_sentence("Stop there. Later sound is not read.  [default: the end]")
        'Stop there.  [default: the end]'
    """
    tail = _TAIL.search(text)
    body = text[: tail.start()] if tail else text
    ends = (end.start() for end in _END.finditer(body))
    body = body[: next((end for end in ends if _is_closed(body[:end])), len(body))].rstrip(".")
    return f"{body}.  {tail[1].strip()}" if tail else f"{body}."


def _is_closed(text: str) -> bool:
    return text.count("(") == text.count(")")


def _print_all(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted and not ctx.resilient_parsing:
        ctx.meta[FULL] = True
        click.echo(ctx.get_help())
        ctx.exit()
