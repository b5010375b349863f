// ---------------------------------------------------------------- figures: geometry
// 1, 2, 3, 4, 6, 8, 12, 16, 24, …
const stops = Array.from({ length: 20 }, (_, i) => [2 ** i, 1.5 * 2 ** i]).flat().filter(Number.isInteger);

function niceTicks(low, high, count) {
  const raw = (high - low) / count;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 2.5, 5, 10].map((m) => m * power).find((s) => s >= raw * (1 - 1e-9));
  const ticks = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + 1e-9 * step; i += 1) ticks.push(+(i * step).toPrecision(10));
  return ticks;
}

const panelCells = data.panels.map(() => []);
for (const cell of data.cells) panelCells[cell.p].push(cell);
const inPanel = (panel) => panelCells[panel];

// The maps from (calls, value) to pixels and back. The axes span all modes, so that they stay put.
function scales(panel, metric, frame) {
  const cells = inPanel(panel).filter((c) => c[metric] && c.calls);
  const along = (v) => (state.log ? Math.log2(Math.max(v, 1)) : v);
  const calls = cells.map((c) => along(c.calls.v));
  const [low, high] = [Math.min(...calls), Math.max(...calls)];
  const values = cells.map(({ [metric]: e }) => Math.max(e.v + (e.se || 0), e.floor || 0));
  const top = metric === "coherence" ? 1 : Math.max(...values) * 1.05 || 1;
  const zoom = state.zoom.get(`${metric}${panel}`);
  const [[a, b], [c, d]] = zoom || [high - low < 1e-6 ? [low - 1, high + 1] : [low, high], [0, top]];
  const room = zoom ? 0 : 1;  // for labels on the left, and for points set side by side
  const [left, right] = [frame[0] + 64 * room, frame[2] - 30 * room];
  const [up, down] = [frame[1] + 7 * room, frame[3] - 7 * room];
  const x = (v) => left + ((along(v) - a) / (b - a)) * (right - left);
  const y = (v) => down - ((v - c) / (d - c)) * (down - up);
  const back = (px, py) => [a + ((px - left) / (right - left)) * (b - a), c + ((down - py) / (down - up)) * (d - c)];
  const inner = stops.filter((s) => state.log && x(s) >= frame[0] && x(s) <= frame[2]);
  const wanted = inner.length > 1 ? inner : niceTicks(state.log ? 2 ** a : a, state.log ? 2 ** b : b, 6);
  const xTicks = [];
  for (const t of wanted) if (!xTicks.length || x(t) - x(xTicks.at(-1)) > 26) xTicks.push(t);
  return { x, y, back, xTicks, yTicks: niceTicks(c, d, 4) };
}

// Samplers no other beats in both calls and value; ties share one place.
function paretoFront(cells, value, sign) {
  const order = [...cells].sort((a, b) => a.calls.v - b.calls.v || sign * (value(b) - value(a)));
  const front = [];
  for (const cell of order) {
    const last = front.at(-1);
    if (last && last.cell.calls.v === cell.calls.v && value(last.cell) === value(cell)) last.ties += 1;
    else if (!last || sign * (value(cell) - value(last.cell)) > 0) front.push({ cell, ties: 0 });
  }
  return front;
}

// The steps of a front that gain more than two standard errors (as report/rules.py counts them).
function clearSteps(front) {
  const spread = ({ v, se, n = 1 }) => se || Math.sqrt((((v * n + 2) / (n + 4)) * (1 - (v * n + 2) / (n + 4))) / (n + 4));
  const kept = [];
  for (const { cell } of front) {
    const now = cell.coherence, last = kept.at(-1)?.coherence || { v: 0, se: 1e-9 };
    if (now.v - last.v > 2 * Math.hypot(spread(now), spread(last))) kept.push(cell);
  }
  return new Set(kept);
}

// Moves points that would cover each other sideways; those on the front keep their place. In a crowd
// only a little: a row of fifty equal points would spread over calls that nobody made.
function dodge(points, gap) {
  const placed = [];
  for (const point of [...points].sort((a, b) => b.front - a.front || a.x - b.x)) {
    const free = (x) => placed.every((q) => Math.hypot(q.x - x, q.y - point.y) >= gap * 0.99);
    const tries = Array.from({ length: data.crowd ? 5 : 25 }, (_, k) => point.x + (k % 2 ? 1 : -1) * Math.ceil(k / 2) * gap);
    point.x = tries.find(free) ?? point.x;
    placed.push(point);
  }
}

// Labels try the empty side of the front first (`sign`: above or below) and keep off what is drawn.
function placeLabels(wanted, points, drawn, frame, sign) {
  const marks = data.crowd ? points.filter((p) => p.front) : points;  // pale ones may be written over
  const boxes = [...marks.map((p) => [p.x - 6, p.y - 6, p.x + 6, p.y + 6]), ...drawn];
  const shared = (a, b, i) => Math.max(0, Math.min(a[i + 2], b[i + 2]) - Math.max(a[i], b[i]));
  const ways = [[-1, -1], [-1, 0], [0, -1], [1, 0], [1, -1], [0, 1], [1, 1], [-1, 1]];
  const places = [8, 18, 30, 44, 60].flatMap((far) => ways.map(([dx, dy]) => [far, dx, dy * sign]));
  const out = [];
  for (const { point, words, must } of wanted) {
    const width = textWidth(words), height = 13;
    let best = null;
    for (const [far, dx, dy] of places) {
      const x = point.x + dx * far * (dy ? 0.7 : 1) - (dx < 0 ? width : dx ? 0 : width / 2);
      const y = point.y + dy * far - height / 2;
      const box = [x, y, x + width, y + height];
      const outside = Math.max(0, frame[0] - x, box[2] - frame[2]) + Math.max(0, frame[1] - y, box[3] - frame[3]);
      const covers = boxes.reduce((sum, other) => sum + shared(box, other, 0) * shared(box, other, 1), outside * 40);
      const cost = covers + far - places[0][0];  // rather touch something than stand far away
      if (!best || cost < best.cost) best = { cost, covers, box, far, point, words };
      if (!cost) break;
    }
    if (best.covers && !must) continue;
    boxes.push(best.box);
    out.push(best);
  }
  return out;
}

// ---------------------------------------------------------------- figures: drawing
function drawPlot(figure) {
  const panel = +figure.dataset.panel, metric = figure.dataset.metric;
  const plot = figure.querySelector(".plot"), wide = figure.classList.contains("wide");
  const here = inPanel(panel).filter((c) => c.m === state.mode && c[metric] && c.calls);
  const cells = here.filter((c) => !state.hidden.has(c.s));
  figure.querySelector(".reset").hidden = !state.zoom.has(`${metric}${panel}`);
  if (!cells.length) {
    plot.replaceChildren(empty(here.length ? "Every sampler of this figure is hidden." : "Not run in this mode."));
    return;
  }
  const width = state.print ? (wide ? 720 : 350) : Math.max(plot.clientWidth, 280);
  const height = wide ? 460 : state.print ? 250 : 290;
  const frame = [44, 18, width - 8, height - 34];
  const { x, y, back, xTicks, yTicks } = scales(panel, metric, frame);
  const value = (c) => c[metric].v;
  const name = metric === "coherence" ? "coherence" : "transition TV";
  const { title, task } = data.panels[panel];
  const root = svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "group", "aria-label": `${title}, ${task}: ${name} by calls` });
  for (const t of yTicks) root.append(line("grid", frame[0], y(t), frame[2], y(t)), text("end", frame[0] - 6, y(t) + 4, t));
  for (const t of xTicks) root.append(line("grid", x(t), frame[1], x(t), frame[3]), text("mid", x(t), frame[3] + 15, t));
  const clip = `clip-${metric}-${panel}`;
  const inside = svg("g", { "clip-path": `url(#${clip})` });
  root.append(
    svg("clipPath", { id: clip }, rect("", frame[0], frame[1] - 8, frame[2] - frame[0], frame[3] - frame[1] + 10)),
    line("axis", frame[0], frame[3], frame[2], frame[3]), inside,
    text("end", frame[2], height - 4, "calls per walk"), text("", frame[0] - 38, 9, name));

  const drawn = drawFloor(inside, here.map((c) => c[metric]).filter((e) => e.floor != null), frame, y);
  drawn.push([0, 0, frame[0] - 30 + textWidth(name), 13]);
  for (const kind of new Set(cells.map((c) => data.samplers[c.s].line))) {
    const mates = cells.filter((c) => data.samplers[c.s].line === kind).sort((a, b) => a.calls.v - b.calls.v);
    const d = `M${mates.map((c) => `${x(c.calls.v)},${y(value(c))}`).join("L")}`;
    inside.append(svg("path", { class: `family-line fam${familyOf(mates[0])}`, d, "data-s": mates.map((c) => c.s).join(" ") }));
  }
  const sign = metric === "coherence" ? 1 : -1;
  const front = paretoFront(cells, value, sign);
  const corners = front.map(({ cell }) => [x(cell.calls.v), y(value(cell))]);
  const path = corners.map(([px, py], i) => (i ? `H${px}V${py}` : `M${px},${py}`)).join("");
  inside.append(svg("path", { class: "front", d: `${path}H${frame[2]}` }));
  corners.forEach(([px, py], i) => {
    const [nx, ny] = corners[i + 1] || [frame[2], py];
    drawn.push([px, py - 1, nx, py + 1], [nx - 1, Math.min(py, ny), nx + 1, Math.max(py, ny)]);
  });

  const best = new Map(front.map(({ cell, ties }) => [cell, labelOf(cell) + (ties ? ` +${ties}` : "")]));
  const told = data.crowd && metric === "coherence" ? clearSteps(front) : best;
  const points = cells
    .map((cell) => ({ cell, x: x(cell.calls.v), y: y(value(cell)), front: best.has(cell) ? 1 : 0 }))
    .filter((p) => p.x >= frame[0] - 1 && p.x <= frame[2] + 1 && p.y >= frame[1] - 8 && p.y <= frame[3] + 8)
    .sort((a, b) => a.cell.calls.v - b.cell.calls.v || value(b.cell) - value(a.cell));
  dodge(points, wide ? 10 : 8);
  if (data.crowd) points.sort((a, b) => a.front - b.front);  // the front is drawn last, on top
  const nodes = points.map((p) => drawPoint(p, metric, y, (wide ? 5.5 : 4.6) - (data.crowd && !p.front ? 1 : 0)));
  inside.append(...nodes);
  rove(nodes);

  const wanted = points.map((point) => ({ point, words: best.get(point.cell) || labelOf(point.cell), must: told.has(point.cell) }));
  const labelled = wanted.filter((label) => label.must || wide).sort((a, b) => b.must - a.must);
  for (const label of placeLabels(labelled, points, drawn, [frame[0] + 2, 0, frame[2] - 2, frame[3] - 2], sign)) {
    const { box, far, point, words } = label;
    if (far > 8) root.append(line("leader", point.x, point.y, clamp(point.x, box[0], box[2]), clamp(point.y, box[1], box[3])));
    root.append(text("label", box[0], box[3] - 3, words));
  }
  listen(root, figure, points, { frame, back, width });
  plot.replaceChildren(root);
}

// The band of what exact walks of the same number have; returns the boxes it takes up.
function drawFloor(inside, floors, frame, y) {
  if (!floors.length) return [];
  const low = Math.min(...floors.map((e) => e.floor - (e.floor_se || 0)));
  const high = Math.max(...floors.map((e) => e.floor + (e.floor_se || 0)));
  const middle = (low + high) / 2, tall = Math.max(y(low) - y(high), 3);
  inside.append(
    rect("floor", frame[0], y(high), frame[2] - frame[0], tall), line("floor-line", frame[0], y(middle), frame[2], y(middle)),
    text("end", frame[2] - 2, y(low) + 17, `floor ${fixed(middle)}`));
  return [[frame[0], y(high), frame[2], y(high) + tall], [frame[2] - 70, y(low) + 4, frame[2], y(low) + 20]];
}

function drawPoint({ cell, x, y: height, front }, metric, y, size) {
  const e = cell[metric], mark = marker(familyOf(cell), size, x, height);
  const node = svg("g", { class: `point fam${familyOf(cell)}${data.crowd && !front ? " behind" : ""}`, "data-s": cell.s });
  if (e.se) node.append(line("error", x, y(e.v - e.se), x, y(e.v + e.se)));
  node.append(mark);
  speak(node, mark, { s: cell.s, title: labelOf(cell), words: tell(cell) });
  return node;
}

// Mouse and touch: the nearest point speaks; a drag zooms; a double click resets.
function listen(root, figure, points, { frame, back, width }) {
  const key = figure.dataset.metric + figure.dataset.panel;
  let start = null, brush = null;
  const at = (event) => {
    const box = root.getBoundingClientRect(), scale = width / box.width;
    const [px, py] = [(event.clientX - box.left) * scale, (event.clientY - box.top) * scale];
    return [clamp(px, frame[0], frame[2]), clamp(py, frame[1] - 8, frame[3])];
  };
  const stop = () => { brush?.remove(); start = brush = null; };
  root.addEventListener("pointerdown", (event) => { if (event.pointerType === "mouse" && !event.button) start = at(event); });
  root.addEventListener("pointermove", (event) => {
    const [px, py] = at(event);
    if (start && Math.hypot(px - start[0], py - start[1]) > 5) {
      hideTip();
      brush ??= root.appendChild(rect("brush", 0, 0, 0, 0));
      const area = [Math.min(px, start[0]), Math.min(py, start[1]), Math.abs(px - start[0]), Math.abs(py - start[1])];
      ["x", "y", "width", "height"].forEach((name, i) => brush.setAttribute(name, area[i]));
      return;
    }
    const near = points.map((p) => ({ p, d: Math.hypot(p.x - px, p.y - py) })).reduce((a, b) => (b.d < a.d ? b : a), { d: 22 });
    light(near.p ? near.p.cell.s : null);
    if (near.p) showTip(labelOf(near.p.cell), tell(near.p.cell), event.clientX, event.clientY);
    else hideTip();
  });
  root.addEventListener("pointerup", (event) => {
    const from = start, zooms = brush;
    stop();
    const [px, py] = at(event);
    if (!zooms || Math.abs(px - from[0]) < 12 || Math.abs(py - from[1]) < 12) return;
    const [[ax, ay], [bx, by]] = [back(...from), back(px, py)];
    state.zoom.set(key, [[Math.min(ax, bx), Math.max(ax, bx)], [Math.min(ay, by), Math.max(ay, by)]]);
    drawPlot(figure);
  });
  root.addEventListener("pointerleave", () => { stop(); hideTip(); light(null); });
  root.addEventListener("dblclick", () => resetZoom(figure));
}
function resetZoom(figure) { state.zoom.delete(figure.dataset.metric + figure.dataset.panel); drawPlot(figure); }
