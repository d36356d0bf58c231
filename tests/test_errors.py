"""Errors: each has a code, and what a message names the command line can name, too."""

from __future__ import annotations

import ast
import pickle
from pathlib import Path

from monitor import errors
from monitor.cli.options import _OPTIONS, in_options
from monitor.errors import Argument, Message, MonitorError, UsageError

PACKAGE = Path(errors.__file__).parent
KINDS = [kind for kind in vars(errors).values() if isinstance(kind, type)]


def test_every_error_has_a_code_of_its_own_below_that_of_its_base():
    raised = [kind for kind in KINDS if issubclass(kind, MonitorError)]
    codes = [kind.code for kind in raised]
    assert len(set(codes)) == len(codes) == len(errors.__all__) - 2
    for kind in raised:
        for base in kind.__mro__[1:]:
            assert not issubclass(base, MonitorError) or kind.code.startswith(base.code)


def test_a_message_names_options_on_the_command_line_even_from_another_process():
    replace = Argument("replace", "True", "LogFile(path, replace=True)")
    error = UsageError(
        Message("watch=me.wav is there: name one with ", Argument("watch"), " or ", replace)
    )
    again = pickle.loads(pickle.dumps(error))
    for each in (error, again):
        said = "watch=me.wav is there: name one with watch= or LogFile(path, replace=True)"
        assert str(each) == said
        assert in_options(each) == "watch=me.wav is there: name one with --watch or --replace"


def test_what_knows_no_arguments_stays_as_it_is():
    assert in_options(UsageError("watch=me.wav is no name")) == "watch=me.wav is no name"
    assert in_options("among=3") == "among=3"


def test_the_command_line_knows_every_argument_that_is_named():
    named = {
        node.args[0].value
        for path in PACKAGE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "Argument" and node.args
        if isinstance(node.args[0], ast.Constant)
    }
    assert {"watch", "replace"} < named <= _OPTIONS.keys()
