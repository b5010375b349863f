// Draws the figures and traces of a maskwalk report from the JSON in the page.
// Plain JavaScript and SVG: no dependencies, no requests. Text only ever enters as text nodes.
// base.js, scatter.js, series.js, traces.js, ledger.js and report.js share one scope, in this order.
const data = JSON.parse(document.getElementById("data").textContent);
const state = { mode: 0, log: true, hidden: new Set(), zoom: new Map(), panel: 0, sampler: 0, print: false };
const all = (selector, root = document) => [...root.querySelectorAll(selector)];
const byId = (id) => document.getElementById(id);
const on = (nodes, event, handler) => nodes.forEach((node) => node.addEventListener(event, () => handler(node)));
const clamp = (v, low, high) => Math.min(Math.max(v, low), high);
const labelOf = (cell) => data.samplers[cell.s].label;
const familyOf = (cell) => data.samplers[cell.s].family;

function svg(name, attributes = {}, ...children) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  node.append(...children);
  return node;
}
const line = (kind, x1, y1, x2, y2) => svg("line", { class: kind, x1, y1, x2, y2 });
const rect = (kind, x, y, width, height, more) => svg("rect", { class: kind, x, y, width, height, ...more });
const text = (kind, x, y, words, more) => svg("text", { class: kind, x, y, ...more }, String(words));
const empty = (words) => Object.assign(document.createElement("p"), { className: "empty", textContent: words });

// ---------------------------------------------------------------- markers, numbers, widths
function polygon(corners, r, turn = 0, inner = 1) {
  const steps = inner === 1 ? corners : 2 * corners;
  const points = Array.from({ length: steps }, (_, i) => {
    const angle = ((i / steps) * 2 + turn) * Math.PI - Math.PI / 2;
    const radius = i % 2 && inner !== 1 ? r * inner : r;
    return `${(radius * Math.cos(angle)).toFixed(2)},${(radius * Math.sin(angle)).toFixed(2)}`;
  });
  return `M${points.join("L")}Z`;
}
const markers = {
  circle: (r) => `M${-r},0a${r},${r} 0 1,0 ${2 * r},0a${r},${r} 0 1,0 ${-2 * r},0Z`,
  square: (r) => polygon(4, r * 1.25, 0.25),
  diamond: (r) => polygon(4, r * 1.35),
  up: (r) => polygon(3, r * 1.35),
  down: (r) => polygon(3, r * 1.35, 1),
  star: (r) => polygon(5, r * 1.55, 0, 0.48),
  cross: (r) => polygon(4, r * 1.5, 0.25, 0.42),
  hexagon: (r) => polygon(6, r * 1.2),
  pentagon: (r) => polygon(5, r * 1.25),
};
function marker(family, r, x = 0, y = 0) {
  const d = markers[data.families[family].marker](r);
  return svg("path", { d, transform: `translate(${x.toFixed(1)} ${y.toFixed(1)})` });
}

const fixed = (v, digits = 3) => v.toFixed(digits);
const brief = (v) => String(+v.toFixed(1));
const away = (z) => `${Math.abs(z).toFixed(1)} standard errors ${z < 0 ? "lower" : "higher"}`;
const withError = (e) => fixed(e.v) + (e.se == null ? "" : ` ± ${fixed(e.se)}`);
const pen = document.createElement("canvas").getContext("2d");
pen.font = `11.5px ${getComputedStyle(document.body).fontFamily}`;
const textWidth = (words) => pen.measureText(words).width;

// ---------------------------------------------------------------- tooltip, highlight, arrow keys
function tell(cell) {
  const lines = [];
  if (cell.coherence) lines.push(`coherence ${withError(cell.coherence)}`);
  const most = cell.calls.max == null ? "" : `, ${brief(cell.calls.max)} at most`;
  lines.push(`calls ${brief(cell.calls.v)} on average${most}`);
  if (cell.tv1) {
    const more = ["floor", "excess"].filter((key) => cell.tv1[key] != null).map((key) => `, ${key} ${fixed(cell.tv1[key])}`);
    lines.push(`transition TV ${withError(cell.tv1)}${more.join("")}`);
  }
  if (cell.transition_validity) lines.push(`valid steps ${withError(cell.transition_validity)}`);
  if (cell.first_invalid) lines.push(`first invalid position ${brief(cell.first_invalid.v)} on average`);
  if (cell.paper) lines.push(`paper ${fixed(cell.paper.v)}${cell.paper.sd == null ? "" : `, sd ${fixed(cell.paper.sd)}`}${cell.paper.away == null ? "" : `; ours is ${away(cell.paper.away)}`}`);
  const n = (cell.coherence || cell.tv1).n;
  if (n != null) lines.push(`n = ${n.toLocaleString("en")}`);
  return lines.join("\n");
}

const tip = byId("tip");
const hideTip = () => { tip.hidden = true; };
function showTip(title, words, x, y) {
  const head = document.createElement("b");
  head.textContent = title;
  tip.replaceChildren(head, words);
  tip.hidden = false;
  const { width, height } = tip.getBoundingClientRect();
  const left = x + 14 + width > innerWidth - 8 ? x - 14 - width : x + 14;
  const top = y + 14 + height > innerHeight - 8 ? y - 14 - height : y + 14;
  tip.style.left = `${Math.max(left, 8) + scrollX}px`;
  tip.style.top = `${Math.max(top, 8) + scrollY}px`;
}

// One sampler stands out in all the figures; null: none does.
function light(sampler) {
  for (const plot of all(".plot")) plot.classList.toggle("lit", sampler != null);
  for (const node of all("[data-s]")) node.classList.toggle("on", node.dataset.s.split(" ").includes(String(sampler)));
}

// A mark that speaks when it has the focus.
function speak(node, mark, { s, title, words }) {
  node.setAttribute("role", "img");
  node.setAttribute("aria-label", `${title}: ${words.replaceAll("\n", ", ")}`);
  node.addEventListener("focus", () => {
    const box = mark.getBoundingClientRect();
    showTip(title, words, box.right, box.bottom);
    light(s);
  });
  node.addEventListener("blur", () => { hideTip(); light(null); });
}

// The mark nearest to the pointer speaks: points are {px, py, s, title, words}.
function nearest(root, width, points) {
  root.addEventListener("pointermove", (event) => {
    const box = root.getBoundingClientRect(), scale = width / box.width;
    const [x, y] = [(event.clientX - box.left) * scale, (event.clientY - box.top) * scale];
    const { p } = points.map((q) => ({ p: q, d: Math.hypot(q.px - x, q.py - y) })).reduce((a, b) => (b.d < a.d ? b : a), { d: 22 });
    light(p ? p.s : null);
    if (p) showTip(p.title, p.words, event.clientX, event.clientY);
    else hideTip();
  });
  root.addEventListener("pointerleave", () => { hideTip(); light(null); });
}

// Arrow keys walk a list of which only one element is a tab stop.
function rove(nodes) {
  nodes.forEach((node, i) => {
    node.setAttribute("tabindex", i ? -1 : 0);
    node.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
      if (!step) return;
      event.preventDefault();
      const next = nodes[(i + step + nodes.length) % nodes.length];
      nodes.forEach((other) => other.setAttribute("tabindex", other === next ? 0 : -1));
      next.focus();
    });
  });
}
