"""Checks of the built site: every link and anchor leads somewhere, and nothing is loaded from elsewhere."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

_LOADED = {("script", "src"), ("img", "src"), ("link", "href"), ("iframe", "src"), ("source", "src"), ("use", "href")}
_FOLLOWED = {("a", "href")}
# Links of the head that name a place and load nothing.
_NOT_LOADED = {"canonical", "next", "prev", "alternate"}


class _Page(HTMLParser):
    """Anchors, links and what a page loads."""

    def __init__(self) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.loaded: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.anchors.update(given[name] for name in ("id", "name") if name in given)
        for name, value in given.items():
            if (tag, name) in _FOLLOWED:
                self.links.append(value)
            elif (tag, name) in _LOADED and given.get("rel", "") not in _NOT_LOADED:
                self.loaded.append(value)


def faults(site: Path) -> list[str]:
    """What is wrong with a built site, one sentence each."""
    pages: dict[Path, _Page] = {}
    found = []
    for path in sorted(site.rglob("*.html")):
        pages[path] = _Page()
        text = path.read_text(encoding="utf-8")
        pages[path].feed(text)
        if re.search(r"(?s)<p>\| (?:(?!</p>).)*\|</p>", text):
            found.append(f"{path.relative_to(site).as_posix()} has rows of a table outside of it")
    if not pages:
        return [f"{site.name} holds no page"]
    for path, page in pages.items():
        if path.name == "404.html":  # its links are relative to the root of a server
            continue
        name = path.relative_to(site).as_posix()
        for target in page.loaded:
            if urlsplit(target).scheme not in ("", "data") or target.startswith("//"):
                found.append(f"{name} loads {target} from elsewhere")
            elif not urlsplit(target).scheme and not (path.parent / unquote(urlsplit(target).path)).exists():
                found.append(f"{name} loads {target}, which is missing")
        for target in page.links:
            parts = urlsplit(target)
            if parts.scheme or target.startswith("//"):
                continue
            file = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            file = file / "index.html" if file.is_dir() else file
            if not file.exists():
                found.append(f"{name} links to {target}, which is missing")
            elif file in pages and unquote(parts.fragment) not in pages[file].anchors | {"", "__skip"}:
                found.append(f"{name} links to {target}, and there is no such place on that page")
    return found
