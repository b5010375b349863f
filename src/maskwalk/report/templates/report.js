"use strict";
// Draws the figures and traces of a maskwalk report from the JSON in the page.
// Plain JavaScript and SVG: no dependencies, no requests. Text only ever enters as text nodes.
(() => {
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

  // The maps from (calls, value) to pixels and back. The axes span all modes, so that they stay put.
  function scales(panel, metric, frame) {
    const cells = data.cells.filter((c) => c.p === panel && c[metric] && c.calls);
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

  // Moves points that would cover each other sideways; those on the front keep their place.
  function dodge(points, gap) {
    const placed = [];
    for (const point of [...points].sort((a, b) => b.front - a.front || a.x - b.x)) {
      const free = (x) => placed.every((q) => Math.hypot(q.x - x, q.y - point.y) >= gap * 0.99);
      const tries = Array.from({ length: 25 }, (_, k) => point.x + (k % 2 ? 1 : -1) * Math.ceil(k / 2) * gap);
      point.x = tries.find(free) ?? point.x;
      placed.push(point);
    }
  }

  // Labels try the empty side of the front first (`sign`: above or below) and keep off what is drawn.
  function placeLabels(wanted, points, drawn, frame, sign) {
    const boxes = [...points.map((p) => [p.x - 6, p.y - 6, p.x + 6, p.y + 6]), ...drawn];
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
        const cost = boxes.reduce((sum, other) => sum + shared(box, other, 0) * shared(box, other, 1), outside * 40);
        if (!best || cost < best.cost) best = { cost, box, far, point, words };
        if (!cost) break;
      }
      if (best.cost && !must) continue;
      boxes.push(best.box);
      out.push(best);
    }
    return out;
  }

  // ---------------------------------------------------------------- figures: drawing
  function drawPlot(figure) {
    const panel = +figure.dataset.panel, metric = figure.dataset.metric;
    const plot = figure.querySelector(".plot"), wide = figure.classList.contains("wide");
    const here = data.cells.filter((c) => c.m === state.mode && c.p === panel && c[metric] && c.calls);
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
    const points = cells
      .map((cell) => ({ cell, x: x(cell.calls.v), y: y(value(cell)), front: best.has(cell) ? 1 : 0 }))
      .filter((p) => p.x >= frame[0] - 1 && p.x <= frame[2] + 1 && p.y >= frame[1] - 8 && p.y <= frame[3] + 8)
      .sort((a, b) => a.cell.calls.v - b.cell.calls.v || value(b.cell) - value(a.cell));
    dodge(points, wide ? 10 : 8);
    const nodes = points.map((p) => drawPoint(p, metric, y, wide ? 5.5 : 4.6));
    inside.append(...nodes);
    rove(nodes);

    const wanted = points.map((point) => ({ point, words: best.get(point.cell) || labelOf(point.cell), must: best.has(point.cell) }));
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

  function drawPoint({ cell, x, y: height }, metric, y, size) {
    const e = cell[metric], mark = marker(familyOf(cell), size, x, height);
    const said = `${labelOf(cell)}: ${tell(cell).replaceAll("\n", ", ")}`;
    const node = svg("g", { class: `point fam${familyOf(cell)}`, "data-s": cell.s, role: "img", "aria-label": said });
    if (e.se) node.append(line("error", x, y(e.v - e.se), x, y(e.v + e.se)));
    node.append(mark);
    node.addEventListener("focus", () => {
      const box = mark.getBoundingClientRect();
      showTip(labelOf(cell), tell(cell), box.right, box.bottom);
      light(cell.s);
    });
    node.addEventListener("blur", () => { hideTip(); light(null); });
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

  const drawPlots = () => all(".panel").forEach(drawPlot);

  // ---------------------------------------------------------------- traces
  // Records count rounds from 0, readers from 1; `tone` is 1 for the first round and 0 for the last.
  function roundsOf(trace) {
    const told = trace.rounds.filter((r) => r >= 0);
    const base = Math.min(...told, 1);
    const number = (r) => r - base + 1;
    const last = Math.max(...told.map(number), 1);
    return { number, last, tone: (r) => (r < 0 ? null : last > 1 ? 1 - (number(r) - 1) / (last - 1) : 1) };
  }

  function tile(x, y, width, height, tone, words) {
    const box = rect(tone == null ? "given" : "tile", x, y, width - 1, height - 1, { rx: 2, style: `--t:${tone ?? 0}` });
    if (words == null) return [box];
    const size = String(words).length > 4 ? { style: "font-size:9px" } : {};
    return [box, text(`mid ${tone == null ? "over" : tone > 0.5 ? "dark" : "pale"}`, x + (width - 1) / 2, y + height / 2 + 3.5, words, size)];
  }

  // An empty drawing with the hatch of given positions and the numbers of positions above its columns.
  function traceRoot(width, height, length, left, cell, y) {
    const pattern = svg("pattern", { id: "hatch", width: 5, height: 5, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)" }, line("hatch", 0, 0, 0, 5));
    const root = svg("svg", { width, height, viewBox: `0 0 ${width} ${height}` }, pattern);
    const every = cell >= 16 ? 1 : Math.ceil(30 / cell);
    for (let i = 0; i < length; i += every) root.append(text("mid", left + (i + 0.5) * cell, y, i));
    return root;
  }

  function drawStrips(cells) {
    const length = Math.max(...cells.map((c) => c.trace.tokens.length));
    const w = clamp(Math.floor(420 / length), 3, 17), h = 20;
    const left = Math.max(...cells.map((c) => textWidth(labelOf(c)))) * 1.1 + 34, width = left + length * w + 4;
    const root = traceRoot(width, cells.length * h + 22, length, left, w, 12);
    const rows = cells.map((cell, row) => {
      const { rounds, valid } = cell.trace, { number, last, tone } = roundsOf(cell.trace), y = 20 + row * h;
      const wrong = valid.indexOf("0"), selected = cell.s === state.sampler;
      const said = wrong < 0 ? "no impossible step" : `first impossible step at position ${wrong}`;
      const node = svg("g", {
        class: `strip fam${familyOf(cell)}${selected ? " selected" : ""}`, role: "button", "aria-pressed": selected,
        "aria-label": `${labelOf(cell)}: ${last} rounds, ${said}`,
      });
      node.append(
        rect("halo", 0, y, width, h, { rx: 4 }), svg("g", { class: "mark" }, marker(familyOf(cell), 4.6, 10, y + h / 2)),
        text("name", 22, y + 14, labelOf(cell)));
      rounds.forEach((r, i) => node.append(...tile(left + i * w, y + 1, w, h - 1, tone(r), r >= 0 && w >= 16 ? number(r) : null)));
      if (wrong >= 0) node.append(line("wrong", left + wrong * w - 0.5, y - 0.5, left + wrong * w - 0.5, y + h - 0.5));
      node.addEventListener("click", () => chooseSampler(cell.s));
      node.addEventListener("keydown", (event) => {
        if (event.key !== "Enter" && event.key !== " ") return;
        event.preventDefault();
        chooseSampler(cell.s);
        byId("strips").querySelector(".selected").focus();
      });
      return node;
    });
    root.append(...rows);
    rove(rows);
    byId("strips").replaceChildren(root);
  }

  function drawTrace(cell) {
    const { tokens, rounds, valid, entropy } = cell.trace, { number, last, tone } = roundsOf(cell.trace);
    const length = tokens.length, given = rounds.some((r) => r < 0) ? 1 : 0, rows = last + given;
    const digits = Math.max(...tokens.map((t) => String(t).length));
    const w = length > 48 ? clamp(Math.floor(900 / length), 2, 16) : Math.max(22, digits * 7 + 4);
    const h = last > 40 ? 6 : 20, left = 62, top = 44, walk = top + rows * h + 10, skip = Math.ceil(14 / h);
    const root = traceRoot(left + length * w + 6, walk + 44, length, left, w, top - 7);
    root.append(text("heading", 0, 13, `${labelOf(cell)}: ${last} ${last === 1 ? "round" : "rounds"}`), text("", 0, top - 7, "position"));
    for (let r = 0; r < rows; r += 1) {
      root.append(rect("lane", left, top + r * h, length * w - 1, h - 1, { rx: 2 }));
      if (r % skip === 0) root.append(text("", 0, top + r * h + Math.min(14, h + 4), r < given ? "given" : `round ${r + 1 - given}`));
    }
    rounds.forEach((r, i) => {
      const row = r < 0 ? 0 : number(r) - 1 + given, shown = w >= 20 ? tokens[i] : null;
      const upper = tile(left + i * w, top + row * h, w, h, tone(r), h >= 14 ? shown : null);
      const node = svg("g", {}, ...upper, ...tile(left + i * w, walk, w, 20, tone(r), shown));
      const nats = entropy[i] == null ? "" : `\nentropy when drawn ${fixed(entropy[i], 2)} nats`;
      const said = (r < 0 ? "given" : `revealed in round ${number(r)}`) + nats;
      node.addEventListener("pointermove", (event) => showTip(`position ${i}: token ${tokens[i]}`, said, event.clientX, event.clientY));
      node.addEventListener("pointerleave", hideTip);
      root.append(node);
    });
    const wrong = valid.indexOf("0");
    [...valid].forEach((ok, i) => {
      const x = left + i * w - 0.5;
      if (ok === "0") root.append(line(i === wrong ? "wrong" : "late-wrong", x, i === wrong ? top - 3 : walk - 3, x, walk + 23));
    });
    const step = wrong ? `first impossible step: ${tokens[wrong - 1]} → ${tokens[wrong]}` : `impossible start: ${tokens[0]}`;
    const said = wrong < 0 ? "every step is possible" : step;
    const span = textWidth(said) * 1.1 + 6;
    const x = wrong < 0 ? left : clamp(left + wrong * w - span / 2, 0, left + length * w - span);
    root.append(text("", 0, walk + 14, "walk"), text(wrong < 0 ? "" : "alarm", x, walk + 38, said));
    byId("trace").replaceChildren(root);
  }

  function drawTraces() {
    const cells = data.cells.filter((c) => c.m === state.mode && c.p === state.panel && c.trace).sort((a, b) => a.s - b.s);
    const choice = byId("trace-sampler");
    choice.replaceChildren(...cells.map((c) => new Option(labelOf(c), c.s)));
    choice.disabled = !cells.length;
    byId("strips").replaceChildren(empty("No traces were recorded here."));
    byId("trace").replaceChildren();
    if (!cells.length) return;
    const cell = cells.find((c) => c.s === state.sampler) || cells[0];
    choice.value = state.sampler = cell.s;
    drawStrips(cells);
    drawTrace(cell);
  }
  function chooseSampler(s) { state.sampler = +s; drawTraces(); }

  // ---------------------------------------------------------------- switches, legend, tables
  function setMode(mode) {
    state.mode = mode;
    for (const node of all("[data-mode]")) node.hidden = +node.dataset.mode !== mode;
    drawPlots();
    drawTraces();
  }

  const membersOf = (family) => data.samplers.flatMap((s, i) => (s.family === family ? [i] : []));
  function show(samplers, visible) {
    for (const s of samplers) visible ? state.hidden.delete(s) : state.hidden.add(s);
    for (const chip of all("[data-sampler]")) chip.setAttribute("aria-pressed", !state.hidden.has(+chip.dataset.sampler));
    for (const name of all("[data-family]")) name.setAttribute("aria-pressed", membersOf(+name.dataset.family).some((s) => !state.hidden.has(s)));
    drawPlots();
  }

  // The first click puts names and calls in rising order, numbers in falling; the next turns it round.
  function sortBy(header) {
    const column = header.cellIndex, body = header.closest("table").tBodies[0];
    const before = header.getAttribute("aria-sort");
    const rising = before ? before === "descending" : column < 2;
    for (const other of header.parentNode.cells) other.removeAttribute("aria-sort");
    header.setAttribute("aria-sort", rising ? "ascending" : "descending");
    const missing = (row) => row.cells[column].dataset.v === "";
    const key = (row) => +row.cells[column].dataset.v * (rising ? 1 : -1);
    body.append(...[...body.rows].sort((a, b) => missing(a) - missing(b) || key(a) - key(b)));
  }

  for (const mark of all("svg.mark")) {
    const family = +mark.closest("[class*='fam']").className.match(/\bfam(\d+)\b/)[1];
    mark.setAttribute("viewBox", "-7 -7 14 14");
    mark.append(marker(family, 5));
  }
  on(all("#modes input"), "change", (input) => setMode(+input.value));
  on(all("#scale input"), "change", (input) => { state.log = input.value === "log"; state.zoom.clear(); drawPlots(); });
  on(all("#theme input"), "change", (input) => { document.documentElement.dataset.theme = input.value; });
  on(all("[data-sampler]"), "click", (chip) => show([+chip.dataset.sampler], state.hidden.has(+chip.dataset.sampler)));
  on(all("[data-sampler]"), "pointerenter", (chip) => light(+chip.dataset.sampler));
  on(all("[data-sampler]"), "pointerleave", () => light(null));
  on(all("[data-family]"), "click", (name) => show(membersOf(+name.dataset.family), name.getAttribute("aria-pressed") === "false"));
  on([byId("all")], "click", () => show(data.samplers.map((_, i) => i), true));
  on(all(".enlarge"), "click", (button) => {
    const wide = button.closest(".panel").classList.toggle("wide");
    button.setAttribute("aria-pressed", wide);
    button.textContent = wide ? "Shrink" : "Enlarge";
    drawPlots();
  });
  on(all(".reset"), "click", (button) => resetZoom(button.closest(".panel")));
  on(all(".sortable thead button"), "click", (button) => sortBy(button.closest("th")));
  byId("trace-panel").append(...data.panels.map((p, i) => new Option(`${p.title}, ${p.task}`, i)));
  on([byId("trace-panel")], "change", (choice) => { state.panel = +choice.value; drawTraces(); });
  on([byId("trace-sampler")], "change", (choice) => chooseSampler(choice.value));
  document.addEventListener("keydown", (event) => { if (event.key === "Escape") hideTip(); });
  addEventListener("resize", () => requestAnimationFrame(drawPlots));
  matchMedia("print").addEventListener("change", (event) => {
    state.print = event.matches;
    if (state.print) byId("legend").open = true;  // else paper has no legend
    drawPlots();
  });
  byId("legend").open = innerWidth > 800;
  state.sampler = Math.max(data.samplers.findIndex((s) => s.line.startsWith("bisection")), 0);
  setMode(0);
})();
