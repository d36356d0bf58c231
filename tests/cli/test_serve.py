"""monitor serve."""

from __future__ import annotations

import pytest


@pytest.mark.parametrize("more", [[], ["--key", "page.key"], ["--certificate", "page.pem"]])
def test_elsewhere_is_refused_in_a_line_without_a_certificate(run, tmp_path, more):
    result = run("serve", "--web", "0.0.0.0:0", "--data", tmp_path / "people", *more)
    assert result.code == 2
    assert "certificate" in result.complaint or "page.pem" in result.complaint
    assert list(tmp_path.iterdir()) == []
