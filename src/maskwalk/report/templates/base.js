// Draws the figures and traces of a maskwalk report from the JSON in the page.
// Plain JavaScript and SVG: no dependencies, no requests. Text only ever enters as text nodes.
// All scripts share one scope, in the order of SCRIPTS in page.py. An estimate is {v, half, n, …}: `half`
// of its 95 % interval comes from the page; no script computes an error.
const data = JSON.parse(unpacked(document.getElementById("data")));
const state = { mode: 0, log: true, hidden: new Set(), zoom: new Map(), panel: 0, sampler: 0, print: false };
const all = (selector, root = document) => [...root.querySelectorAll(selector)];
const byId = (id) => document.getElementById(id);
const on = (nodes, event, handler) => nodes.forEach((node) => node.addEventListener(event, () => handler(node)));
const clamp = (v, low, high) => Math.min(Math.max(v, low), high);
const MARK = "†";  // stands beside every shaped result
const labelOf = (cell) => data.samplers[cell.s].label + (cell.law ? MARK : "");
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
function element(name, kind, ...children) {
  const node = document.createElement(name);
  if (kind) node.className = kind;
  node.append(...children);
  return node;
}
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
const pen = document.createElement("canvas").getContext("2d");
pen.font = `11.5px ${getComputedStyle(document.body).fontFamily}`;
const textWidth = (words) => pen.measureText(words).width;

