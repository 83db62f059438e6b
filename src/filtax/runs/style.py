"""How the report looks, and its only script: values under the pointer, and a drag that enlarges a part of a figure."""

__all__ = ["CSS", "SCRIPT"]

CSS = """
:root { color-scheme: light; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 62rem; margin: 0 auto; padding: 1rem;
  color: #222; background: #fff; }
h1 { font-size: 1.7rem; margin: .5rem 0; overflow-wrap: anywhere; }
h2 { border-top: 1px solid #ccc; padding-top: 1rem; margin-top: 2rem; font-size: 1.25rem; }
h3 { font-size: 1rem; margin: 1rem 0 .3rem; }
p { color: #444; } .words { font-weight: 600; color: #111; overflow-wrap: anywhere; }
.cards { display: flex; flex-wrap: wrap; gap: .6rem; }
.cards div { border: 1px solid #ccc; border-radius: .4rem; padding: .4rem .9rem; font-size: .85rem; color: #555; }
.cards b { display: block; font-size: 1.35rem; color: #111; font-variant-numeric: tabular-nums; }
section { overflow-x: auto; }
table { border-collapse: collapse; font-size: .9em; margin: .6rem 0; }
th, td { padding: .2rem .8rem; text-align: right; border-bottom: 1px solid #ddd; font-variant-numeric: tabular-nums; }
th:first-child, td:first-child { text-align: left; overflow-wrap: anywhere; min-width: 6rem; }
td.best { font-weight: 700; }
figure { margin: .3rem 0; } svg { width: 100%; height: auto; display: block; touch-action: pan-y; cursor: crosshair; }
svg text { font: 12px system-ui, sans-serif; fill: #555; }
.line { fill: none; stroke-width: 1.4; } .band { fill: #1a5fb4; opacity: .18; }
.grid { stroke: #e4e4e4; } .level { stroke: #c01c28; stroke-dasharray: 5 4; } 
.mark { stroke: #c01c28; stroke-width: 1.5; }
rect { fill: #1a5fb4; opacity: .75; } .pointer { stroke: #888; } .chosen { fill: #888; opacity: .2; }
.keys { font-size: .85rem; min-height: 1.4em; } .keys span { margin-right: 1rem; display: inline-block; }
.keys i { display: inline-block; width: 1.1em; height: .25em; margin-right: .35em; vertical-align: middle; }
output { color: #111; font-variant-numeric: tabular-nums; }
pre { background: #f5f5f5; padding: .7rem; font-size: .82rem; white-space: pre-wrap;
  overflow-wrap: anywhere; }
@media (max-width: 600px) { svg text { font-size: 22px; } .line, .mark { stroke-width: 2.5; }
  svg .near { display: none; } table { font-size: .78em; } th, td { padding: .2rem .25rem; }
  th:first-child, td:first-child { min-width: 5rem; } }
@media print { body { max-width: none; font-size: 11pt; } section { overflow: visible; }
  figure, tr, .cards div { break-inside: avoid; } h2, h3 { break-after: avoid; } output { display: none; } }
"""

SCRIPT = """
document.querySelectorAll('figure.chart').forEach(function (figure) {
  var svg = figure.querySelector('svg'), said = figure.querySelector('output');
  var data = JSON.parse(figure.querySelector('script').textContent);
  var left = data.plot[0], right = data.plot[1], width = data.plot[2], height = data.plot[3];
  var names = Object.keys(data.lines), from = null;
  function add(name) { return svg.appendChild(document.createElementNS('http://www.w3.org/2000/svg', name)); }
  var pointer = add('line'), chosen = add('rect');
  pointer.setAttribute('class', 'pointer'); chosen.setAttribute('class', 'chosen');
  chosen.setAttribute('height', height); chosen.setAttribute('width', 0);
  function place(event) {
    var box = svg.getBoundingClientRect(), view = svg.viewBox.baseVal;
    return view.x + (event.clientX - box.left) / box.width * view.width;
  }
  function show(x) {
    var at = data.span[0] + (x - left) / (right - left) * (data.span[1] - data.span[0]), best = -1;
    data.x.forEach(function (value, i) {
      if (value !== null && (best < 0 || Math.abs(value - at) < Math.abs(data.x[best] - at))) best = i;
    });
    if (best < 0) return;
    var value = data.x[best];
    var when = data.timed ? new Date(value / 1000).toISOString().slice(0, 16).replace('T', ' ') : String(value);
    var known = names.filter(function (name) { return data.lines[name][best] !== null; });
    var values = known.map(function (name) { return name + ' ' + data.lines[name][best]; });
    said.textContent = when + '  ' + values.join('  ');
    var drawn = left + (value - data.span[0]) / (data.span[1] - data.span[0]) * (right - left);
    pointer.setAttribute('x1', drawn); pointer.setAttribute('x2', drawn);
    pointer.setAttribute('y1', 0); pointer.setAttribute('y2', height);
  }
  svg.addEventListener('pointerdown', function (event) { from = place(event); });
  svg.addEventListener('pointermove', function (event) {
    var x = place(event);
    show(x);
    if (from === null) return;
    chosen.setAttribute('x', Math.min(from, x)); chosen.setAttribute('width', Math.abs(x - from));
  });
  svg.addEventListener('pointerup', function (event) {
    var x = place(event), low = Math.min(from, x), high = Math.max(from, x);
    chosen.setAttribute('width', 0);
    if (from !== null && high - low > 8) {
      svg.setAttribute('preserveAspectRatio', 'none');
      svg.setAttribute('viewBox', [low, 0, high - low, height].join(' '));
      svg.style.aspectRatio = width + '/' + height;
    }
    from = null;
  });
  svg.addEventListener('dblclick', function () {
    svg.removeAttribute('preserveAspectRatio');
    svg.setAttribute('viewBox', [0, 0, width, height].join(' '));
  });
});
"""
