// ---------------------------------------------------------------- figures: a metric against cost
const RING = 2;  // pixels from one ring to the next

function drawPlot(figure) {
  const panel = +figure.dataset.panel, metric = metricOf[figure.dataset.metric], { key } = metric;
  const plot = figure.querySelector(".plot"), wide = figure.classList.contains("wide");
  const here = inPanel(panel).filter((c) => c.m === state.mode && drawable(c, key));
  const cells = here.filter((c) => !state.hidden.has(c.s));
  figure.querySelector(".reset").hidden = !state.zoom.has(`${key}${panel}`);
  if (!cells.length) {
    plot.replaceChildren(empty(here.length ? "Every sampler of this figure is hidden." : "Not measured in this mode."));
    return;
  }
  const width = state.print ? (wide ? 720 : 350) : Math.max(plot.clientWidth, 280);
  const height = wide ? 460 : state.print ? 250 : 290;
  const frame = [44, 18, width - 8, height - 34];
  const { x, y, back, xTicks, yTicks } = scales(panel, metric, frame);
  const value = (c) => c.e[key].v;
  const { title, task } = data.panels[panel];
  const root = svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "group", "aria-label": `${title}, ${task}: ${metric.heading} by ${data.unit}` });
  for (const t of yTicks) root.append(line("grid", frame[0], y(t), frame[2], y(t)), text("end", frame[0] - 6, y(t) + 4, t));
  for (const t of xTicks) root.append(line("grid", x(t), frame[1], x(t), frame[3]), text("mid", Math.min(x(t), width - 1 - textWidth(`${t}`) / 2), frame[3] + 15, t));
  const clip = `clip-${data.metrics.indexOf(metric)}-${panel}`;
  const inside = svg("g", { "clip-path": `url(#${clip})` });
  root.append(
    svg("clipPath", { id: clip }, rect("", frame[0], frame[1] - 8, frame[2] - frame[0], frame[3] - frame[1] + 10)),
    line("axis", frame[0], frame[3], frame[2], frame[3]), inside,
    text("end", frame[2], height - 4, data.unit), text("", frame[0] - 38, 9, metric.title));

  const drawn = [[0, 0, frame[0] - 30 + textWidth(metric.title), 13]];
  drawn.push(...drawFloor(inside, metric, here.map((c) => c.e[key]).filter((e) => e.floor != null), frame, y));
  drawn.push(...drawReference(root, inside, metric, panel, frame, y));
  drawLines(inside, cells, (c) => `${x(costOf(c))},${y(value(c))}`);
  const bounded = cells.some((c) => c.e[key].bound);  // a bound may be beaten or not: nobody knows
  const front = metric.better && !bounded ? paretoFront(cells, metric) : [];
  drawn.push(...drawFront(inside, front.map(({ cell }) => [x(costOf(cell)), y(value(cell))]), frame));

  const best = new Map(front.map(({ cell, ties }) => [cell, labelOf(cell) + (ties ? ` +${ties}` : "")]));
  const points = cells
    .map((cell) => ({ cell, x: x(costOf(cell)), y: y(value(cell)), front: best.has(cell) ? 1 : 0, own: data.samplers[cell.s].own ? 1 : 0 }))
    .filter((p) => p.x >= frame[0] - 1 && p.x <= frame[2] + 1 && p.y >= frame[1] - 8 && p.y <= frame[3] + 8)
    .sort((a, b) => costOf(a.cell) - costOf(b.cell) || value(b.cell) - value(a.cell));
  ringUp(points, wide ? 7 : 6, data.crowd ? 1 : 3);
  const nodes = new Map(points.map((p) => [p, drawPoint(p, key, y, (wide ? 5.5 : 4.6) - (data.crowd && !p.front && !p.own ? 1 : 0) + (p.own ? 2.4 : 0))]));
  const order = [...points].sort((a, b) => a.own - b.own || b.ring - a.ring || a.front - b.front);  // the front is drawn last, on top, and what was evaluated on top of that
  inside.append(...order.map((p) => nodes.get(p)));
  rove([...nodes.values()]);

  const worst = metric.limits[metric.better > 0 ? 0 : 1], causal = (cell) => data.samplers[cell.s].causal;
  const ahead = new Set(bounded ? [] : bestShaped(cells, metric));
  const wanted = points.map((point) => ({ point, words: best.get(point.cell) || labelOf(point.cell), must: point.own || (point.front && value(point.cell) !== worst) || causal(point.cell) || ahead.has(point.cell) }));
  const labelled = wanted.filter((label) => label.must || wide).sort((a, b) => b.must - a.must);
  const many = counts(points);
  // A label that would pile up on others is left out: pointing at its mark names it.
  const labels = placeLabels(labelled, points, [...drawn, ...many.map((one) => one.box)], [frame[0] + 2, 0, frame[2] - 2, frame[3] - 2], metric.better || 1);
  const free = ({ box }) => labels.every((l) => box[0] >= l.box[2] || l.box[0] >= box[2] || box[1] >= l.box[3] || l.box[1] >= box[3]);
  inside.append(...many.filter(free).map((one) => one.node));  // a label tells more than a count
  for (const { box, far, point, words } of labels) {
    if (far > 8) root.append(line("leader", point.x, point.y, clamp(point.x, box[0], box[2]), clamp(point.y, box[1], box[3])));
    root.append(text("label", box[0], box[3] - 3, words));
  }
  listen(root, figure, points, { frame, back, width });
  plot.replaceChildren(root);
}

// Of the shaped results beyond a front the one that is best, the cheapest of equals.
function bestShaped(cells, metric) {
  const score = (c) => metric.better * c.e[metric.key].v;
  return aheadByShaping(cells, metric).sort((a, b) => score(b) - score(a) || costOf(a) - costOf(b)).slice(0, 1);
}

// The settings of a family, joined.
function drawLines(inside, cells, at) {
  for (const kind of new Set(cells.map((c) => data.samplers[c.s].line))) {
    const mates = cells.filter((c) => data.samplers[c.s].line === kind).sort((a, b) => costOf(a) - costOf(b));
    inside.append(svg("path", { class: `family-line fam${familyOf(mates[0])}`, d: `M${mates.map(at).join("L")}`, "data-s": mates.map((c) => c.s).join(" ") }));
  }
}

// The steps of a front; returns the boxes they take up.
function drawFront(inside, corners, frame) {
  if (!corners.length) return [];
  const path = corners.map(([px, py], i) => (i ? `H${px}V${py}` : `M${px},${py}`)).join("");
  inside.append(svg("path", { class: "front", d: `${path}H${frame[2]}` }));
  return corners.flatMap(([px, py], i) => {
    const [nx, ny] = corners[i + 1] || [frame[2], py];
    return [[px, py - 1, nx, py + 1], [nx - 1, Math.min(py, ny), nx + 1, Math.max(py, ny)]];
  });
}

// The band of what exact sequences of the same number get; returns the boxes it takes up.
function drawFloor(inside, metric, floors, frame, y) {
  if (!floors.length) return [];
  const low = Math.min(...floors.map((e) => e.floor - e.floorHalf));
  const high = Math.max(...floors.map((e) => e.floor + e.floorHalf));
  const middle = (low + high) / 2, tall = Math.max(y(low) - y(high), 3);
  inside.append(
    rect("floor", frame[0], y(high), frame[2] - frame[0], tall), line("floor-line", frame[0], y(middle), frame[2], y(middle)),
    text("end", frame[2] - 2, y(low) + 17, `floor ${numberOf(metric, middle)}`));
  return [[frame[0], y(high), frame[2], y(high) + tall], [frame[2] - 70, y(low) + 4, frame[2], y(low) + 20]];
}

// The line of the reference's own value; returns the boxes it takes up.
function drawReference(root, inside, metric, panel, frame, y) {
  const mark = data.references.find((c) => c.m === state.mode && c.p === panel)?.e[metric.key];
  if (!mark) return [];
  const level = y(mark.v), words = `${data.reference} ${numberOf(metric, mark.v)}`;
  if (level < frame[1] - 8 || level > frame[3]) return [];
  inside.append(line("mark-line", frame[0], level, frame[2], level));
  const above = level - 4 > frame[1] + 8 ? level - 4 : level + 13;
  root.append(text("label", frame[0] + 3, above, words));
  return [[frame[0], level - 1, frame[2], level + 1], [frame[0], above - 11, frame[0] + 6 + textWidth(words), above + 3]];
}

// A ring is an outline, so that what it surrounds is seen.
function drawPoint({ cell, x, y: height, front, own, ring }, key, y, size) {
  const [low, high] = ends(cell.e[key]), mark = marker(familyOf(cell), size + ring * RING, x, height);
  const kinds = [data.crowd && !front && !own ? "behind" : "", ring ? "ring" : "", own ? "own" : ""].join(" ");
  const node = svg("g", { class: `point fam${familyOf(cell)} ${kinds}`, "data-s": cell.s });
  if (high > low) node.append(line("error", x, y(low), x, y(high)));
  node.append(mark);
  speak(node, mark, { s: cell.s, title: labelOf(cell), words: tell(cell) });
  return node;
}

// How many marks are at a place, from three on, and the room that takes; the larger of two counts that would touch.
function counts(points) {
  const apart = 14, kept = [];
  for (const p of [...points].sort((a, b) => b.mates.length - a.mates.length)) {
    if (p.mates.length > 2 && kept.every((q) => Math.abs(p.x - q.x) > apart || Math.abs(p.y - q.y) > apart)) kept.push(p);
  }
  return kept.map(({ x, y, mates }) => {
    const left = x + 7 + RING, wide = textWidth(`${mates.length}`);
    return { box: [left, y - 16, left + wide, y - 5], node: text("count", left, y - 6, mates.length) };
  });
}
