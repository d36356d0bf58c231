"""Pages as a browser would find them."""

import re
from html.parser import HTMLParser


class Reader(HTMLParser):
    """The tags of a page with their attributes, and its text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.feed(page)

    @property
    def text(self) -> str:
        """All that can be read."""
        return "".join(self.texts)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data):
        self.texts.append(data)


def read_alone(page: str) -> Reader:
    """Read a page that must stand by itself: it runs nothing, fetches nothing and leads nowhere."""
    reader = Reader(page)
    tags = {tag for tag, _ in reader.tags}
    assert {"script", "link", "img", "iframe", "object", "form"}.isdisjoint(tags)
    for _, attributes in reader.tags:
        assert not any(name.startswith("on") for name in attributes)
        for name in ("href", "src", "action"):
            assert (attributes.get(name) or "#").startswith("#")
    assert "://" not in page
    assert "@import" not in page
    assert "url(" not in re.sub(r"url\(#", "", page)
    ids = [attributes["id"] for _, attributes in reader.tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    return reader
