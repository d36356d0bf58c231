"""Files of timed words, one a line."""

from __future__ import annotations

import pytest

from monitor.errors import SourceError
from monitor.transcripts import read_transcript


@pytest.mark.parametrize(
    "line", ["no json", "[]", '{"word": 3}', '{"word": "a", "begin": 2, "end": 1}',
             '{"word": "a", "begin": 0, "end": 1, "known": 0.5}', '{"word": "a", "begin": "0"}'],
)  # fmt: skip
def test_a_file_of_words_that_is_none(tmp_path, line):
    path = tmp_path / "a.words"
    path.write_text(f'{{"word": "a", "begin": 0, "end": 0.1}}\n{line}\n')
    with pytest.raises(SourceError, match=r"a\.words line 2"):
        read_transcript(path)
    with pytest.raises(SourceError, match=r"b\.words: No such file"):
        read_transcript(tmp_path / "b.words")
