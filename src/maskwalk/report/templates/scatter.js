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

