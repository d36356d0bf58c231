"""monitor completion: what lets a shell complete commands, options and their values."""

from __future__ import annotations

import click

__all__ = ["command"]


@click.command("completion", short_help="Let a shell complete commands and options.")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def command(shell: str) -> int:
    """Print the script that lets SHELL complete commands, options, files, features and people.

    \b
    bash    add to ~/.bashrc:  eval "$(monitor completion bash)"
    zsh     add to ~/.zshrc, after compinit:  eval "$(monitor completion zsh)"
    fish    monitor completion fish > ~/.config/fish/completions/monitor.fish

    Then open another terminal. It completes `monitor` where that is on the PATH, and takes bash 4.4
    or newer.
    """
    from click.shell_completion import get_completion_class

    from monitor.cli import cli
    from monitor.cli.completing import VARIABLE

    of_shell = get_completion_class(shell)
    assert of_shell is not None
    script = of_shell(cli, {}, "monitor", VARIABLE).source()
    # fish would cut a list of features at its first comma
    script = script.replace('(string split "," ', '(string split -m 1 "," ')
    click.echo(script, nl=False)
    return 0
