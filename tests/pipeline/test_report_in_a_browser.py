"""The report as a browser sees it: no error, nothing off the side of a phone, values under the pointer, on paper."""

import json
import re
import shutil
import subprocess

import numpy as np
import pytest

from filtax.pipeline import Config, run_pipeline, write_outputs

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
pytestmark = [
    pytest.mark.x64,
    pytest.mark.skipif(BROWSER is None, reason="no Chromium here: install the package chromium to look at the report"),
]
PROBE = """
<script>
var figure = document.querySelector('figure.chart'), svg = figure.querySelector('svg');
var box = svg.getBoundingClientRect();
function send(kind, share) {
  var at = {clientX: box.left + share * box.width, clientY: box.top + 9, bubbles: true};
  svg.dispatchEvent(new PointerEvent(kind, at));
}
send('pointermove', 0.5);
var said = figure.querySelector('output').textContent;
var cells = [...document.querySelectorAll('td, th, pre')].filter(function (each) {
  if (each.tagName === 'PRE') return each.scrollWidth > each.clientWidth + 1;
  var whole = document.createRange();
  whole.selectNodeContents(each);
  return /^[-0-9.a-z%:T]+$/.test(each.textContent) && !/^[a-z]+-/.test(each.textContent)
    && whole.getClientRects().length > 1; });
var wide = [...document.querySelectorAll('body *')].filter(function (each) {
  return !each.closest('pre, table, svg') && each.getBoundingClientRect().right > window.innerWidth + 1; });
parent.postMessage(JSON.stringify({said: said,
  page: document.documentElement.scrollWidth, room: window.innerWidth,
  cells: cells.map(function (each) { return each.textContent; }),
  wide: wide.map(function (each) { return each.tagName; }),
  figures: document.querySelectorAll('figure.chart').length,
  text: parseFloat(getComputedStyle(svg.querySelector('text')).fontSize) * box.width / 900}), '*');
</script></body>"""
# a window is never as narrow as a phone, a frame is
FRAME = """<!doctype html><body><script>
window.addEventListener('message', function (event) { document.body.dataset.probe = event.data; });
</script><iframe src="probe.html" style="width:%dpx;height:900px;border:0"></iframe></body>"""


def browse(*arguments, folder):
    quiet = ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--enable-logging=stderr")
    home = ("--user-data-dir=" + str(folder / "profile"), "--virtual-time-budget=3000")
    command = [BROWSER, *quiet, *home, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, cwd=folder)
    assert done.returncode == 0, done.stderr
    return done


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """A run with a gap, gross errors, a rejected row, a level shift and names that are not kind."""
    folder = tmp_path_factory.mktemp("browser")
    rng = np.random.default_rng(0)
    y = 50.0 + 5.0 * np.sin(2 * np.pi * np.arange(600) / 24) + rng.normal(size=600)
    y[[200, 400]] = 900.0
    hours = np.datetime64("2024-01-01T00:00") + 60 * np.arange(600)
    lines = [f"{h},{float(v)!r}\n" for h, v in zip(hours, y, strict=True)]
    lines[300] = f'{hours[300]},"<img src=x onerror=alert(1)>"\n'
    (folder / "a <b> & 'c'.csv").write_text("when,load</script>\n" + "".join(lines))
    config = Config(str(folder / "a <b> & 'c'.csv"), "load</script>", time="when", horizon=3)
    run_pipeline(config, folder / "run")
    write_outputs(folder / "run")
    text = (folder / "run" / "report.html").read_text()
    assert text.endswith("</body></html>")
    (folder / "probe.html").write_text(text.replace("</body>", PROBE))
    return folder


@pytest.mark.parametrize(("width", "least"), [(1200, 10.0), (390, 8.0)], ids=["desk", "phone"])
def test_nothing_is_wrong_on_a_screen(width, least, page):
    (page / "frame.html").write_text(FRAME % width)
    done = browse("--window-size=1400,1000", "--dump-dom", (page / "frame.html").as_uri(), folder=page)
    assert "CONSOLE" not in done.stderr, done.stderr
    found = re.search(r'data-probe="([^"]*)"', done.stdout)
    assert found, "the page's scripts did not run to their end"
    told = json.loads(found[1].replace("&quot;", '"').replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&"))
    assert told["page"] <= told["room"] == width
    assert told["cells"] == []  # a number is never broken, a command never cut
    assert told["wide"] == []
    assert re.match(r"2024-01-\d\d \d\d:\d\d  (forecast|target) [\d.]+$", told["said"])
    assert told["figures"] >= 5  # all rows, the last ones, errors, coverage, changes, drift
    assert told["text"] >= least  # pixels
    assert "<img src=x" not in done.stdout


def test_it_can_be_printed(page):
    browse("--no-pdf-header-footer", "--print-to-pdf=paper.pdf", (page / "run" / "report.html").as_uri(), folder=page)
    paper = (page / "paper.pdf").read_bytes()
    assert paper.startswith(b"%PDF")
    assert 2 <= len(re.findall(rb"/Type\s*/Page\b", paper)) <= 12
