"""The report of a reproduction: for each experiment its figures, its tables, the claims and the verdicts, on one page.

The page is one file without scripts or addresses, readable on a phone and on paper. What was found at the full size
comes first, what the quick size or another seed found after it; each says which it is.
"""

import base64
import html
import os
from collections import Counter
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from thesis.findings import Finding

FORMS = "Where what was tested is not what the thesis prints, both are given: its words, and then the form tested."
ABSENT = "not published as a number"
CSS = """
:root { color-scheme: light dark; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 0 auto; padding: 1rem; }
h2 { border-top: 1px solid #8886; padding-top: 1.2rem; margin-top: 2.5rem; }
img { max-width: 100%; height: auto; background: #fff; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-size: .92em; margin: .6rem 0; }
th, td { padding: .2rem .7rem; text-align: right; border-bottom: 1px solid #8884; font-variant-numeric: tabular-nums; }
th:first-child, td:first-child, table.claims td { text-align: left; vertical-align: top; }
caption { text-align: left; font-weight: 600; padding: .3rem 0; }
.published { color: #777; }
.verdict { font-weight: 600; min-width: 8rem; }
.holds { color: #0a7a4b; } .fails { color: #c0392b; } .other { color: #9a6b00; }
small { color: #777; }
.claims p { margin: .3rem 0; font-size: .95em; } q { font-style: italic; }
.interval { white-space: nowrap; }
td.published small { display: inline-block; max-width: 7rem; line-height: 1.2; }
@media (max-width: 40rem) {
  figure { margin: 1rem 0; }
  table.claims tr { display: block; border-bottom: 1px solid #8884; padding: .4rem 0; }
  table.claims td { display: block; border: 0; padding: 0; overflow-wrap: anywhere; }
}
@media print { body { max-width: none; } h2 { break-before: page; } }
"""


def write_report(findings: Sequence[Finding], path: Path) -> Path:
    """Write the page.

    Args:
        findings: What `reproduce` returns, or what `gather` finds in its folder.
        path: Where to write.

    Returns:
        The path.

    >>> import tempfile
    >>> from thesis import reproduce
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     page = write_report(reproduce(["ridge"], out=Path(folder)), Path(folder) / "report.html").read_text()
    >>> "holds" in page and "<script" not in page
    True
    """
    groups = [(said, list(some)) for said, some in groupby(findings, _size)]
    body = "".join(f"<p>{_links(some)}</p>" + "\n".join(map(_section, some)) for _, some in groups)
    counts = "".join(f"<p>{said.capitalize()}{_counts(some)}.</p>" for said, some in groups)
    forms = f"<p>{FORMS}</p>" if any(finding["claims"] for finding in findings) else ""
    head = f"<h1>The experiments, run again</h1>{counts or '<p>Nothing was found.</p>'}{forms}"
    meta = '<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'
    top = f'<!doctype html><html lang="en"><head>{meta}<title>filtax reproduce</title><style>{CSS}</style></head>'
    aside = path.with_name(path.name + ".part")
    aside.write_text(f"{top}<body>{head}{body}</body></html>", encoding="utf-8")
    os.replace(aside, path)  # a link goes, and not what it names
    return path


def _size(finding: Finding) -> str:
    return f"{finding['size']} size, seed {finding['seed']}"


def _anchor(finding: Finding) -> str:
    return f"{finding['name']}-{finding['size']}-{finding['seed']}"


def _counts(findings: Sequence[Finding]) -> str:
    """What became of the claims; nothing where there are none."""
    claims = [claim for finding in findings for claim in finding["claims"]]
    if not claims:
        return ""
    counts = Counter(_kind(claim["verdict"]) for claim in claims)
    words = {"holds": "hold", "fails": "do not hold", "other": "hold in part or are not decided"}
    summary = ", ".join(f"{counts[kind]} {word}" for kind, word in words.items() if counts[kind])
    return f": of {len(claims)} claims, {summary}"


def _links(findings: Sequence[Finding]) -> str:
    links = " · ".join(f'<a href="#{_anchor(one)}">{html.escape(one["name"])}</a>' for one in findings)
    return f"{_size(findings[0]).capitalize()}: {links}"


def _section(finding: Finding) -> str:
    said = html.escape
    figures = "".join(_figure(finding.folder / f"{name}.png", label) for label, name in finding["figures"].items())
    tables = "".join(_table(table) for table in finding["tables"])
    notes = "".join(f"<li>{said(note)}</li>" for note in finding["notes"])
    rows = "".join(_claim(claim) for claim in finding["claims"])
    claims = f'<div class="scroll"><table class="claims"><caption>Claims</caption>{rows}</table></div>' if rows else ""
    setting = ", ".join(f"{key}={value}" for key, value in finding["setting"].items())
    about = f"{finding['seconds']:.1f} s; {setting}"
    return (
        f'<section id="{_anchor(finding)}"><h2>{said(finding["name"])}: {said(finding["title"])}</h2>'
        f"<p><small>{said(_size(finding).capitalize())}</small></p>{claims}"
        f"{figures}{tables}<ul>{notes}</ul><p><small>{said(about)}</small></p></section>"
    )


def _claim(claim: dict[str, Any]) -> str:
    said = {name: html.escape(value) for name, value in claim.items() if isinstance(value, str)}
    text, source, evidence, verdict = (said[name] for name in ("text", "source", "evidence", "verdict"))
    both = f"<p><q>{said['printed']}</q> Tested: {said['tested']}</p>" if "printed" in said else "<br>"
    reason = f"<p>Why, as found at the full size with seed 0: {said['reason']}</p>" if "reason" in said else ""
    why = f"{reason}<small>{source}; tolerance: {said['tolerance']}. {evidence}</small>"
    kind = _kind(claim["verdict"])
    return f'<tr><td>{claim["number"]}</td><td>{text}{both}{why}</td><td class="verdict {kind}">{verdict}</td></tr>'


def _figure(path: Path, label: str) -> str:
    data = base64.b64encode(path.read_bytes()).decode()
    alt = html.escape(label)
    caption = f"<figcaption><small>{alt}</small></figcaption>"
    return f'<figure><img alt="{alt}" src="data:image/png;base64,{data}">{caption}</figure>'


def _table(table: dict[str, Any]) -> str:
    marks = ['class="published"' if name in table["published"] else "" for name in table["columns"]]
    head = "".join(f"<th {mark}>{html.escape(name)}</th>" for mark, name in zip(marks, table["columns"], strict=True))
    rows = "".join(
        "<tr>"
        + "".join(f"<td {mark}>{_cell(value, mark)}</td>" for mark, value in zip(marks, row, strict=True))
        + "</tr>"
        for row in table["rows"]
    )
    caption = f"<caption>{html.escape(table['title'])}</caption>"
    return f'<div class="scroll"><table>{caption}<thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>'


def _cell(value: Any, published: str = "") -> str:
    """Words and numbers as they are; two numbers are an interval; what is not there is said of what is not ours."""
    if value is None:
        return f"<small>{ABSENT}</small>" if published else ""
    if isinstance(value, list | tuple):
        return f'<small class="interval">[{", ".join(_number(end) for end in value)}]</small>'
    return _number(value) if isinstance(value, float) else html.escape(str(value))


def _number(value: float) -> str:
    """Four digits; thousands in full.

    >>> _number(0.123456), _number(295123.0)
    ('0.1235', '295,100')
    """
    return f"{float(f'{value:.4g}'):,.0f}" if 1e3 <= abs(value) < 1e7 else f"{value:.4g}"


def _kind(verdict: str) -> str:
    return {"holds": "holds", "does not hold": "fails"}.get(verdict, "other")
