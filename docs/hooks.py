"""The site beyond docs/: the reference of the command line, top-level pages, examples, results.

A link is written as it works in a checkout (``../CONTRIBUTING.md``); the file it names, wherever
in the repository, becomes a page (Markdown, Python) or a file of the site. ``cli.md`` is made
of --help, the tables of ``records.md`` of what `monitor.events` declares.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from docs.check import table_of_families, table_of_rooms
from monitor.cli import COMMANDS, cli
from monitor.cli.help import FULL
from monitor.events.schema import RECORDS

ROOT = Path(__file__).resolve().parents[1]
_LINK = re.compile(r"(?:(?<=\]\()|(?<=src=\")|(?<=srcset=\"))(?!\w+:|#|/)([^)\"#\s]+)")
_DARK = re.compile(r"<source [^>]*dark[^>]*>\n")
"""The dark version of a picture, for GitHub; docs/site.css darkens the light one with the theme."""
_taken: dict[str, str] = {}
"""Files of the repository that are pages here: where each lies in the site, and where it is."""
_CODE = re.compile(r"(^```.*?^```|``.+?``|`[^`\n]+`)", re.MULTILINE | re.DOTALL)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the command line, every file that a page links to, and those that these link to."""
    files.append(File.generated(config, "cli.md", content=_command_line()))
    icon = ROOT / "monitor" / "web" / "static" / "icon.svg"
    files.append(File.generated(config, "icon.svg", abs_src_path=str(icon)))
    waiting = [
        (f"docs/{file.src_uri}", file.content_string) for file in files.documentation_pages()
    ]
    while waiting:
        home, text = waiting.pop()
        for target in _linked(home, text):
            place = _place(target)
            if files.get_file_from_path(place) or not (ROOT / target).is_file():
                continue
            _taken[place] = target
            if target.endswith((".md", ".py")):
                content = (ROOT / target).read_text(encoding="utf-8")
                if target.endswith(".py"):
                    content = f"# {posixpath.basename(target)}\n\n```python\n{content}```\n"
                files.append(File.generated(config, place, content=content))
                waiting.append((target, content))
            else:
                files.append(File.generated(config, place, abs_src_path=str(ROOT / target)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Point links at where the files lie in the site."""
    del config
    here = page.file.src_uri
    home = _taken.get(here, f"docs/{here}")

    def moved(match: re.Match[str]) -> str:
        place = _place(_resolved(home, match[1]))
        if files.get_file_from_path(place) is None:
            return match[1]
        return posixpath.relpath(place, posixpath.dirname(here))

    markdown = _DARK.sub("", markdown)
    if here == "records.md":
        for record in RECORDS:
            heading = f"## {record.title}\n"
            markdown = markdown.replace(heading, f"{heading}\n{record.table}\n", 1)
    if here == "architecture.md":
        markdown = f"{markdown}\n{table_of_rooms()}\n"
    if here == "metrics.md":
        markdown = f"{markdown}\n## Families\n\n{table_of_families()}\n"
    parts = _CODE.split(markdown)  # what is no code, and what is, in turn
    return "".join(part if i % 2 else _LINK.sub(moved, part) for i, part in enumerate(parts))


def _command_line() -> str:
    """A page of what --help-all says of every command."""
    width: dict[str, Any] = {
        "terminal_width": 100,
        "max_content_width": 100,
        "resilient_parsing": True,
    }
    top = cli.make_context("monitor", [], **width)
    contexts = [top]
    for name in COMMANDS:
        command = cli.get_command(top, name)
        assert command is not None
        group = command.make_context(name, [], parent=top, **width)
        contexts.append(group)
        for part, each in sorted(getattr(command, "commands", {}).items()):
            contexts.append(each.make_context(part, [], parent=group, **width))
    parts = ["# Command line\n\nWhat `--help-all` says.\n"]
    for context in contexts:
        context.meta[FULL] = True
        text = "\n".join(line.rstrip() for line in context.get_help().splitlines())
        parts.append(f"## {context.command_path}\n\n```text\n{text}\n```\n")
    return "\n".join(parts)


def _linked(home: str, text: str) -> list[str]:
    """The files of the repository that a page links to."""
    return [_resolved(home, link) for link in _LINK.findall("".join(_CODE.split(text)[::2]))]


def _resolved(home: str, link: str) -> str:
    """The path in the repository of a link of the page there."""
    return posixpath.normpath(posixpath.join(posixpath.dirname(home), link))


def _place(target: str) -> str:
    """Where a file of the repository lies in the site."""
    if target.startswith("docs/"):
        return target.removeprefix("docs/")
    if target == "README.md":
        return "readme.md"  # README.md would be the start page
    folder, name = posixpath.split(target)
    if name.endswith(".py"):
        name += ".md"
    if name == "README.md":
        name = "index.md"
    return posixpath.join(folder, name)
