// ---------------------------------------------------------------- numbers in words
const metricOf = Object.fromEntries(data.metrics.map((m) => [m.key, m]));
const heldOut = (mode) => data.held.find((c) => c.m === mode);
const number = ({ key, digits }, v) => (key === "calls" ? brief(v) : fixed(v, digits));
function estimated(metric, { v, half, n, most }) {
  const error = metric.key === "calls" && half === 0 ? "" : ` ± ${half == null ? "–" : fixed(half, metric.digits)}`;
  return `${most ? "≤ " : ""}${number(metric, v)}${error}${n == null ? "" : ` (n = ${n.toLocaleString("en")})`}`;
}
const tell = (cell) => data.metrics.filter((m) => cell[m.key]).map((m) => `${m.name} ${estimated(m, cell[m.key])}`).join("\n");

// ---------------------------------------------------------------- figures: a metric against calls
const ends = ({ v, half }) => [v - (half || 0), v + (half || 0)];

// The maps from (calls, value) to pixels and back. The axes span all modes, so that they stay put.
function scales(metric, frame) {
  const cells = data.cells.filter((c) => c[metric] && c.calls);
  const along = (v) => (state.log ? Math.log2(Math.max(v, 1)) : v);
  const calls = cells.map((c) => along(c.calls.v));
  const [low, high] = [Math.min(...calls), Math.max(...calls)];
  const values = [...cells, ...data.held.filter((c) => c[metric])].flatMap((c) => ends(c[metric]));
  const [least, most] = [Math.min(...values), Math.max(...values)];
  const pad = (most - least) * 0.04 || 0.1;
  const zoom = state.zoom.get(`${metric}0`);
  const [[a, b], [c, d]] = zoom || [high - low < 1e-6 ? [low - 1, high + 1] : [low, high], [least - pad, most + pad]];
  const room = zoom ? 0 : 1;
  const [left, right] = [frame[0] + 34 * room, frame[2] - 34 * room];
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

function drawPlot(figure) {
  const key = figure.dataset.metric, metric = metricOf[key];
  const plot = figure.querySelector(".plot"), wide = figure.classList.contains("wide");
  const here = data.cells.filter((c) => c.m === state.mode && c[key] && c.calls);
  const cells = here.filter((c) => !state.hidden.has(c.s));
  figure.querySelector(".reset").hidden = !state.zoom.has(`${key}0`);
  if (!cells.length) {
    plot.replaceChildren(empty(here.length ? "Every sampler of this figure is hidden." : "Not measured with these draws."));
    return;
  }
  const width = state.print ? (wide ? 720 : 350) : Math.max(plot.clientWidth, 280);
  const height = wide ? 460 : state.print ? 250 : 290;
  const frame = [44, 18, width - 8, height - 34];
  const { x, y, back, xTicks, yTicks } = scales(key, frame);
  const value = (c) => c[key].v;
  const root = svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "group", "aria-label": `${metric.title}, by calls` });
  for (const t of yTicks) root.append(line("grid", frame[0], y(t), frame[2], y(t)), text("end", frame[0] - 6, y(t) + 4, t));
  for (const t of xTicks) root.append(line("grid", x(t), frame[1], x(t), frame[3]), text("mid", x(t), frame[3] + 15, t));
  const clip = `clip-${key}`;
  const inside = svg("g", { "clip-path": `url(#${clip})` });
  root.append(
    svg("clipPath", { id: clip }, rect("", frame[0], frame[1] - 8, frame[2] - frame[0], frame[3] - frame[1] + 10)),
    line("axis", frame[0], frame[3], frame[2], frame[3]), inside,
    text("end", frame[2], height - 4, "calls per text"), text("", frame[0] - 38, 9, metric.name));

  const drawn = [[0, 0, frame[0] - 30 + textWidth(metric.name), 13], ...drawHeldOut(root, inside, metric, frame, y)];
  for (const kind of new Set(cells.map((c) => data.samplers[c.s].line))) {
    const mates = cells.filter((c) => data.samplers[c.s].line === kind).sort((a, b) => a.calls.v - b.calls.v);
    const d = `M${mates.map((c) => `${x(c.calls.v)},${y(value(c))}`).join("L")}`;
    inside.append(svg("path", { class: `family-line fam${familyOf(mates[0])}`, d, "data-s": mates.map((c) => c.s).join(" ") }));
  }
  const bounded = cells.some((c) => c[key].most);  // a bound may be beaten or not: nobody knows
  const front = metric.better && !bounded ? paretoFront(cells, value, metric.better) : [];
  const corners = front.map(({ cell }) => [x(cell.calls.v), y(value(cell))]);
  const path = corners.map(([px, py], i) => (i ? `H${px}V${py}` : `M${px},${py}`)).join("");
  if (front.length) inside.append(svg("path", { class: "front", d: `${path}H${frame[2]}` }));
  corners.forEach(([px, py], i) => {
    const [nx, ny] = corners[i + 1] || [frame[2], py];
    drawn.push([px, py - 1, nx, py + 1], [nx - 1, Math.min(py, ny), nx + 1, Math.max(py, ny)]);
  });

  const best = new Map(front.map(({ cell, ties }) => [cell, labelOf(cell) + (ties ? ` +${ties}` : "")]));
  const points = cells
    .map((cell) => ({ cell, x: x(cell.calls.v), y: y(value(cell)), front: best.has(cell) ? 1 : 0 }))
    .filter((p) => p.x >= frame[0] - 1 && p.x <= frame[2] + 1 && p.y >= frame[1] - 8 && p.y <= frame[3] + 8)
    .sort((a, b) => a.cell.calls.v - b.cell.calls.v || value(b.cell) - value(a.cell));
  dodge(points, wide ? 10 : 8);
  const nodes = points.map((p) => drawPoint(p, key, y, wide ? 5.5 : 4.6));
  inside.append(...nodes);
  rove(nodes);

  const clear = beyondNoise(front, key, metric.better);
  const wanted = points.map((point) => ({ point, words: best.get(point.cell) || labelOf(point.cell), must: clear.has(point.cell) || data.samplers[point.cell.s].causal }));
  const labelled = wanted.filter((label) => label.must || wide).sort((a, b) => b.must - a.must);
  for (const { box, far, point, words } of placeLabels(labelled, points, drawn, [frame[0] + 2, 0, frame[2] - 2, frame[3] - 2], metric.better || 1)) {
    if (far > 8) root.append(line("leader", point.x, point.y, clamp(point.x, box[0], box[2]), clamp(point.y, box[1], box[3])));
    root.append(text("label", box[0], box[3] - 3, words));
  }
  listen(root, figure, points, { frame, back, width });
  plot.replaceChildren(root);
}

// The line of held-out text's own value; returns the boxes it takes up.
function drawHeldOut(root, inside, metric, frame, y) {
  const held = heldOut(state.mode)?.[metric.key];
  if (!held) return [];
  const level = y(held.v), words = `held-out text ${number(metric, held.v)}`;
  if (level < frame[1] - 8 || level > frame[3]) return [];
  inside.append(line("mark-line", frame[0], level, frame[2], level));
  const above = level - 4 > frame[1] + 8 ? level - 4 : level + 13;
  root.append(text("label", frame[0] + 3, above, words));
  return [[frame[0], level - 1, frame[2], level + 1], [frame[0], above - 11, frame[0] + 6 + textWidth(words), above + 3]];
}

// The steps of a front that gain more than the interval of the difference.
function beyondNoise(front, key, sign) {
  const kept = [];
  for (const { cell } of front) {
    const now = cell[key], last = kept.at(-1)?.[key];
    if (!last || sign * (now.v - last.v) > Math.hypot(now.half || 0, last.half || 0)) kept.push(cell);
  }
  return new Set(kept);
}

function drawPoint({ cell, x, y: height }, metric, y, size) {
  const [low, high] = ends(cell[metric]), mark = marker(familyOf(cell), size, x, height);
  const node = svg("g", { class: `point fam${familyOf(cell)}`, "data-s": cell.s });
  if (high > low) node.append(line("error", x, y(low), x, y(high)));
  node.append(mark);
  speak(node, mark, { s: cell.s, title: labelOf(cell), words: tell(cell) });
  return node;
}

// ---------------------------------------------------------------- texts side by side
const picks = all("#texts select[data-side]");
const chosen = (pick) => (pick.value === "" ? null : +pick.value);  // null: held-out text
function drawTexts(mode) {
  const which = +(byId("texts").querySelector("[name='which']:checked")?.value ?? 0);
  for (const pick of picks) {
    const setting = chosen(pick);
    const cell = setting == null ? heldOut(mode) : data.cells.find((c) => c.m === mode && c.s === setting);
    const side = byId(`text-${pick.dataset.side}`), found = cell?.texts[which];
    side.querySelector("h3").textContent = setting == null ? "held-out text" : data.samplers[setting].label;
    side.querySelector(".hint").textContent = cell ? aboutText(cell) : "";
    side.querySelector(".text").replaceChildren(found ?? empty(cell ? "This text was not recorded." : "Not run with these draws."));
  }
}
const aboutText = (cell) => ["calls", "mauve", "own_bpb"].filter((key) => cell[key]).map((key) => `${metricOf[key].name} ${estimated(metricOf[key], cell[key])}`).join(" · ");

function pickDefaults(mode) {
  picks.forEach((pick, i) => {
    pick.value = data.chosen[mode][i] ?? "";
    if (pick.selectedIndex < 0) pick.selectedIndex = 0;  // there is no held-out text
  });
}
let untouched = true;
on(picks, "change", () => { untouched = false; drawTexts(state.mode); });
on(all("[name='which']"), "change", () => drawTexts(state.mode));
on(all("#modes input"), "change", (input) => {
  if (untouched) pickDefaults(+input.value);
  drawTexts(+input.value);
});
pickDefaults(0);
drawTexts(0);
