# SPDX-License-Identifier: GPL-2.0
"""Self-contained HTML pages: one file, no request to anywhere, readable without JavaScript.

`Page` collects parts; every text that is given to it is escaped here, since much of it comes from a guest.
"""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence

STYLE = """
:root{--ink:#1c2430;--soft:#5b6675;--line:#dde3ea;--back:#f6f8fa;--good:#1a7f4b;--bad:#b3261e;--accent:#2a6f97}
*{box-sizing:border-box}
body{margin:0;background:var(--back);color:var(--ink);
font:16px/1.5 system-ui,-apple-system,"Segoe UI","DejaVu Sans",sans-serif}
main{max-width:1080px;margin:0 auto;padding:32px 24px 64px}
h1{font-size:30px;line-height:1.2;margin:0 0 4px}
h2{font-size:21px;margin:44px 0 10px}
h3{font-size:16px;margin:26px 0 6px}
p{margin:8px 0;max-width:78ch}
.sub{color:var(--soft)}
.note{background:#fff;border:1px solid var(--line);
border-left:4px solid var(--accent);border-radius:6px;padding:10px 16px;margin:16px 0}
.note p:first-child{margin-top:0}.note p:last-child{margin-bottom:0}
.verdict{display:inline-block;font-weight:650;color:#fff;border-radius:6px;padding:5px 14px;margin:12px 0 0}
.verdict.good{background:var(--good)}.verdict.bad{background:var(--bad)}
figure{margin:14px 0;background:#fff;border:1px solid var(--line);border-radius:8px;padding:12px}
figure svg{width:100%;height:auto;display:block}
figcaption{color:var(--soft);font-size:14px;padding:6px 4px 0}
.wide{overflow-x:auto;background:#fff;border:1px solid var(--line);border-radius:8px;margin:12px 0}
table{border-collapse:collapse;width:100%;font-size:14.5px}
th{text-align:left;font-weight:600;color:var(--soft);font-size:13px;white-space:nowrap}
th,td{padding:7px 12px;border-bottom:1px solid var(--line);vertical-align:top}
tr:last-child td{border-bottom:0}
td.num,th.num{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}
td.name{white-space:nowrap}
td.good{color:var(--good);font-weight:600}td.bad{color:var(--bad);font-weight:600}
pre{font:12.5px/1.45 ui-monospace,"DejaVu Sans Mono",monospace;margin:6px 0;padding:10px 14px}
code{font:13.5px ui-monospace,"DejaVu Sans Mono",monospace;overflow-wrap:anywhere}
.cards{display:grid;grid-template-columns:repeat(auto-fit,minmax(190px,1fr));gap:12px;margin:18px 0}
.card{background:#fff;border:1px solid var(--line);border-radius:8px;padding:12px 16px}
.card b{display:block;font-size:24px;font-variant-numeric:tabular-nums;line-height:1.25}
.card span{color:var(--soft);font-size:13.5px}
nav a{margin-right:16px;color:var(--accent)}
"""


class Markup(str):
    """Text that is HTML already, and is not escaped again."""


def escape(value: object) -> Markup:
    """A value as HTML text; `Markup` stays as it is."""
    return value if isinstance(value, Markup) else Markup(html.escape(str(value)))


def code(value: object) -> Markup:
    """A value as HTML, in a fixed-width font."""
    return Markup(f"<code>{escape(value)}</code>")


class Cell:
    """A table's cell with a class: num (a number), good, bad."""

    def __init__(self, value: object, kind: str = "") -> None:
        self.value, self.kind = value, kind

    def html(self) -> str:
        """The cell as HTML."""
        return f'<td class="{self.kind}">{escape(self.value)}</td>' if self.kind else f"<td>{escape(self.value)}</td>"


def num(value: object) -> Cell:
    """A right-aligned cell."""
    return Cell(value, "num")


class Page:
    """An HTML page that grows part by part."""

    def __init__(self, title: str, subtitle: str = "") -> None:
        self.title = title
        self._parts: list[str] = [f"<h1>{escape(title)}</h1>"]
        if subtitle:
            self._parts.append(f'<p class="sub">{escape(subtitle)}</p>')

    def verdict(self, good: bool, text: object) -> None:
        """A coloured line: the outcome."""
        self._parts.append(f'<div class="verdict {"good" if good else "bad"}">{escape(text)}</div>')

    def heading(self, text: object, level: int = 2, anchor: str = "") -> None:
        """A heading of level 2 or 3; `anchor` lets links reach it."""
        name = f' id="{escape(anchor)}"' if anchor else ""
        self._parts.append(f"<h{level}{name}>{escape(text)}</h{level}>")

    def text(self, *paragraphs: object) -> None:
        """Paragraphs."""
        self._parts += [f"<p>{escape(paragraph)}</p>" for paragraph in paragraphs]

    def listing(self, text: object) -> None:
        """Lines as they are, in a fixed-width font: what a command prints, or a file."""
        self._parts.append(f'<pre class="wide">{escape(text)}</pre>')

    def note(self, *paragraphs: object) -> None:
        """Paragraphs in a box: what the reader has to know."""
        inside = "".join(f"<p>{escape(paragraph)}</p>" for paragraph in paragraphs)
        self._parts.append(f'<div class="note">{inside}</div>')

    def links(self, links: Iterable[tuple[str, str]]) -> None:
        """A line of links: (text, target)."""
        inside = "".join(f'<a href="{escape(target)}">{escape(text)}</a>' for text, target in links)
        self._parts.append(f"<nav>{inside}</nav>")

    def cards(self, cards: Iterable[tuple[str, str]]) -> None:
        """Large figures: (figure, what it is)."""
        inside = "".join(
            f'<div class="card"><b>{escape(value)}</b><span>{escape(what)}</span></div>' for value, what in cards
        )
        self._parts.append(f'<div class="cards">{inside}</div>')

    def table(self, header: Sequence[object], rows: Iterable[Sequence[object]]) -> None:
        """A table; a header or a cell may be a `Cell`, for its class."""
        head = "".join(
            f'<th class="{cell.kind}">{escape(cell.value)}</th>'
            if isinstance(cell, Cell)
            else f"<th>{escape(cell)}</th>"
            for cell in header
        )
        body = "".join(
            "<tr>" + "".join(cell.html() if isinstance(cell, Cell) else Cell(cell).html() for cell in row) + "</tr>"
            for row in rows
        )
        self._parts.append(
            f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'
        )

    def figure(self, svg: Markup, caption: str = "") -> None:
        """A plot (see plots.py) and what it shows."""
        below = f"<figcaption>{escape(caption)}</figcaption>" if caption else ""
        self._parts.append(f"<figure>{svg}{below}</figure>")

    def html(self) -> str:
        """The whole page."""
        return (
            '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
            '<meta name="viewport" content="width=device-width,initial-scale=1">'
            f"<title>{escape(self.title)}</title><style>{STYLE}</style></head>\n"
            "<body><main>\n" + "\n".join(self._parts) + "\n</main></body></html>\n"
        )


def number(value: float | None) -> str:
    """A figure for people: three or four significant digits, thousands apart; a dash when there is none."""
    if value is None:
        return "–"
    size = abs(value)
    if value == int(value) and size < 1e15:
        return f"{int(value):,}".replace(",", " ")
    if size >= 1000:
        return f"{value:,.0f}".replace(",", " ")
    return f"{value:.4g}" if size >= 100 else f"{value:.3g}"
