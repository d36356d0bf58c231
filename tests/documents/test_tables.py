from __future__ import annotations

from monitor.documents import bullet_list, table


def test_names_stand_left_and_numbers_right():
    made = table(["loss", "feature", "bits"], [["LL", "<f0>", "1.0\n0.9 to 1.1"]], names=2)
    assert made.count('<th scope="row">') == 2
    assert "&lt;f0&gt;" in made
    assert '<td class="number">1.0<small>0.9 to 1.1</small></td>' in made


def test_no_item_no_list():
    assert bullet_list([]) == ""
    assert bullet_list(["a & b"]) == '<ul class="notes"><li>a &amp; b</li></ul>'
