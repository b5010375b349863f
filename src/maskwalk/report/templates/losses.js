// ---------------------------------------------------------------- losses: where nats are lost
const nats = (v) => (v == null ? "not known" : `${v.toFixed(v < 0.0995 ? 3 : 2)} nats`);
const listOf = (places) => `position${places.length === 1 ? "" : "s"} ${places.join(", ")}`;
const sum = (values) => values.reduce((a, b) => a + b, 0);
const selected = new Map();  // group: the sampler whose rounds are shown

function loss(row) {
  if (row.infinite) return Infinity;
  return row.kl ?? row.nll;
}
function natsAxis(root, most, frame, bottom) {
  const x = (v) => frame[0] + (v / (most || 1)) * (frame[2] - frame[0]);
  const fits = (ticks) => ticks.every((t, i) => i === 0 || x(t) - x(ticks[i - 1]) >= (textWidth(t) + textWidth(ticks[i - 1])) / 2 + 8);
  const ticks = [4, 3, 2, 1].map((count) => niceTicks(0, most || 1, count)).find(fits) || [0];
  for (const t of ticks) root.append(line("grid", x(t), frame[1], x(t), frame[3]), text("mid", x(t), bottom, t));
  return x;
}
// The two parts side by side, or one bar where the loss cannot be split.
function stack(parts, x, y, height) {
  const [dependence, denoiser, whole] = parts, nodes = [];
  if (dependence == null && denoiser == null) return whole == null ? [] : [rect("whole", x(0), y, Math.max(x(whole) - x(0), 0.5), height)];
  nodes.push(rect("dependence", x(0), y, Math.max(x(dependence || 0) - x(0), 0), height));
  if (denoiser != null) nodes.push(rect("denoiser", x(dependence || 0), y, Math.max(x(denoiser) - x(0), 0), height));
  return nodes;
}

function tellRow(row, group) {
  const bound = row.upper ? "at most " : "";
  const lines = [`${metricOf[data.cost].title} ${brief(row.cost)} on average, ${row.most} at most`];
  if (row.infinite) lines.push(`KL infinite: ${(100 * row.lost).toFixed(1)} % of the sequences cannot be drawn`);
  if (row.infinite && row.kl_rest != null) lines.push(`KL of the rest ${nats(row.kl_rest)}`);
  else if (row.kl != null) lines.push(`KL ${bound}${row.kl.toFixed(3)}${row.half ? ` ± ${Math.max(row.half, 0.001).toFixed(3)}` : ""} nats per sequence`);
  else lines.push(`negative log-likelihood ${bound}${row.nll.toFixed(2)} nats per sequence`);
  if (row.dependence != null) lines.push(`dependence ${nats(row.dependence)}, denoiser ${row.infinite && row.denoiser == null ? "infinite" : nats(row.denoiser)}`);
  if (row.quality != null) lines.push(`${group.quality} by replay ${row.quality.toFixed(3)}${row.reliable === false ? " (unreliable: few sequences carry it)" : ""}`);
  if (row.regret != null) lines.push(`regret ${nats(Math.max(row.regret, 0))} above the best plan of as many calls`);
  if (row.half != null && !row.infinite) lines.push(INTERVAL);
  return lines.join("\n");
}
function tellRound(row, r) {
  const round = row.rounds[r], lines = [];
  if (row.example) {
    const together = row.example.rounds.flatMap((at, i) => (at === r ? [i] : []));
    const cost = row.example.cost ? `, cost ${nats(sum(together.map((i) => row.example.cost[i])))}` : "";
    if (together.length) lines.push(`example: ${listOf(together)}${together.length > 1 ? " together" : ""}${cost}`);
  }
  const share = `${Math.round(100 * round.share)} % of sequences`;
  lines.push(`most often: ${listOf(round.positions)} (${share}${round.cost == null ? "" : `, cost ${nats(round.cost)}`})`);
  const parts = round.dependence == null ? `negative log-likelihood ${nats(round.nll)}` : `dependence ${nats(round.dependence)}, denoiser ${nats(round.denoiser)}`;
  lines.push(`mean of all sequences: ${brief(round.revealed)} revealed, ${parts}`);
  return lines.join("\n");
}
const lostIn = (round) => (round.dependence == null ? round.nll : round.dependence + (round.denoiser ?? 0));

// A name that is too long keeps both ends; its tip has all of it.
function shortened(words, room) {
  if (textWidth(words) * 1.09 <= room) return words;
  const end = words.slice(-7), cut = (size) => `${words.slice(0, size).trimEnd()}…${end}`;
  let size = words.length - end.length;
  while (size > 1 && textWidth(cut(size)) * 1.09 > room) size -= 1;
  return cut(size);
}

// A name in one line or two; the second is shortened where it does not fit either.
function inTwo(words, room) {
  if (textWidth(words) * 1.09 <= room) return [words];
  const parts = words.match(/[^\s,]*[\s,]*/g).filter(Boolean);
  let first = "";
  while (parts.length && textWidth(first + parts[0].trimEnd()) * 1.09 <= room) first += parts.shift();
  return first ? [first.trimEnd(), shortened(parts.join(""), room)] : [shortened(words, room)];
}
// Samplers of one family have lines of their own: whole, dashed, dotted, ….
const DASHES = ["none", "7 3", "2 3", "9 3 2 3", "1 5"];
function dashOf(rows, row) {
  const mine = rows.filter((other) => familyOf(other) === familyOf(row)).map((other) => other.s).sort((a, b) => a - b);
  return DASHES[mine.indexOf(row.s) % DASHES.length];
}

function rowsOf(figure) {
  const group = +figure.dataset.losses;
  const rows = data.losses[group].rows.filter((row) => !state.hidden.has(row.s));
  return { group, rows: rows.sort((a, b) => loss(a) - loss(b) || a.s - b.s) };
}
function canvasOf(plot, figure, height, said) {
  const wide = figure.classList.contains("wide");
  const width = state.print ? (wide ? 720 : 350) : Math.max(plot.clientWidth, 280);
  return { width, root: svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "group", "aria-label": said }) };
}
const choose = (group, s) => { selected.set(group, s); all(`.panel[data-losses="${group}"]`).forEach(drawLosses); };

function drawBars(figure, plot) {
  const { group, rows } = rowsOf(figure), top = 4;
  const across = canvasOf(plot, figure, 0, "").width;
  const left = Math.min(Math.max(...rows.map((r) => textWidth(labelOf(r)))) * 1.09 + 28, across * 0.56);
  const names = rows.map((row) => inTwo(labelOf(row), left - 28)), heights = names.map((name) => (name.length > 1 ? 32 : 19));
  const tops = heights.map((_, i) => top + sum(heights.slice(0, i)));
  const { width, root } = canvasOf(plot, figure, sum(heights) + 38, `nats lost by sampler, ${data.losses[group].title}`);
  const frame = [left, top, width - 66, top + sum(heights)];
  const finite = rows.map(loss).filter(Number.isFinite);
  const most = Math.max(...finite, ...rows.map((r) => (r.dependence ?? 0) + (r.denoiser ?? 0)), 0.01);
  const x = natsAxis(root, most, frame, frame[3] + 14);
  const current = rows.some((r) => r.s === selected.get(group)) ? selected.get(group) : rows[0].s;
  const nodes = rows.map((row, i) => {
    const h = heights[i], y = tops[i], total = loss(row), end = Number.isFinite(total) ? (row.dependence == null ? total : row.dependence + row.denoiser) : most;
    const node = svg("g", { class: `loss-row fam${familyOf(row)}${row.s === current ? " selected" : ""}`, "data-s": row.s, role: "button", "aria-pressed": row.s === current });
    const name = svg("g", {}, ...names[i].map((words, k) => text("name", 20, y + 14 + 13 * k, words)));
    const bar = y + (h - 12) / 2;
    node.append(rect("halo", 0, y, width, h, { rx: 4 }), svg("g", { class: "mark" }, marker(familyOf(row), 4.4, 9, y + h / 2)), name);
    node.append(...stack([row.dependence, row.denoiser, row.kl ?? row.nll], x, bar, 12));
    if (row.infinite) node.append(rect("endless", x(row.dependence || 0), bar, Math.max(x(most) - x(row.dependence || 0), 4), 12));
    node.append(text("amount", x(end) + 5, bar + 10, Number.isFinite(total) ? `${row.upper ? "≤ " : ""}${total.toFixed(2)}` : "∞"));
    const words = tellRow(row, data.losses[group]);
    node.setAttribute("aria-label", `${labelOf(row)}: ${words.replaceAll("\n", ", ")}`);
    node.addEventListener("pointermove", (event) => { showTip(labelOf(row), words, event.clientX, event.clientY); light(row.s); });
    node.addEventListener("pointerleave", () => { hideTip(); light(null); });
    node.addEventListener("focus", () => { const box = name.getBoundingClientRect(); showTip(labelOf(row), words, box.right, box.bottom); });
    node.addEventListener("blur", hideTip);
    node.addEventListener("click", () => choose(group, row.s));
    node.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" && event.key !== " ") return;
      event.preventDefault();
      choose(group, row.s);
      figure.querySelector(".selected").focus();
    });
    return node;
  });
  root.append(...nodes, text("end", frame[2], frame[3] + 28, "nats per sequence"));
  rove(nodes);
  plot.replaceChildren(root);
}

// One sampler: one row per round, with what it costs on the left and the positions on the right.
function drawRounds(figure, plot) {
  const { group, rows } = rowsOf(figure);
  const row = rows.find((r) => r.s === selected.get(group)) || rows[0];
  const count = row.rounds.length, h = count > 40 ? 6 : 19, top = 24, length = row.length;
  const { width, root } = canvasOf(plot, figure, top + count * h + 38, `rounds of ${labelOf(row)}`);
  const frame = [58, top, 58 + (width - 58) * 0.36, top + count * h];
  const most = Math.max(...row.rounds.map(lostIn), 1e-3);
  const x = natsAxis(root, most, frame, frame[3] + 14);
  const left = frame[2] + 24, w = (width - left - 4) / length;
  root.append(text("heading", 0, 13, labelOf(row)), text("end", frame[2], frame[3] + 28, "nats per sequence"), text("", left, frame[3] + 28, "position"));
  const every = Math.max(1, Math.ceil(18 / w));
  for (let i = 0; i < length; i += every) root.append(text("mid", left + (i + 0.5) * w, frame[3] + 14, i));
  const nodes = row.rounds.map((round, r) => {
    const y = top + r * h, node = svg("g", { class: "round", role: "img" });
    node.append(rect("halo", 0, y, width, h));
    if (r % Math.ceil(14 / h) === 0) node.append(text("", 2, y + Math.min(13, h + 4), `round ${r + 1}`));
    node.append(rect("lane", left, y + 1, length * w, h - 2, { rx: 2 }), ...stack([round.dependence, round.denoiser, round.nll], x, y + 3, Math.max(h - 6, 2)));
    const places = row.example ? row.example.rounds.flatMap((at, i) => (at === r ? [i] : [])) : round.positions;
    for (const i of places) node.append(rect("now", left + i * w + 0.5, y + 1, Math.max(w - 1, 1), h - 2, { rx: 1.5 }));
    const title = `${labelOf(row)}, round ${r + 1}`, words = tellRound(row, r);
    node.setAttribute("aria-label", `${title}: ${words.replaceAll("\n", ", ")}`);
    node.addEventListener("pointermove", (event) => showTip(title, words, event.clientX, event.clientY));
    node.addEventListener("pointerleave", hideTip);
    node.addEventListener("focus", () => { const box = node.getBoundingClientRect(); showTip(title, words, box.left + 80, box.bottom - 10); });
    node.addEventListener("blur", hideTip);
    return node;
  });
  root.append(...nodes);
  rove(nodes);
  plot.replaceChildren(root);
}

// Labels one below the other, each as near as can be to where its line ends.
const APART = 13;
function spread(ends, top, bottom) {
  const placed = [...ends].sort((a, b) => a.py - b.py);
  placed.forEach((one, i) => { one.at = Math.max(one.py, i ? placed[i - 1].at + APART : top); });
  placed.reverse().forEach((one, i) => { one.at = Math.min(one.at, i ? placed[i - 1].at - APART : bottom); });
  return placed;
}

function drawCurves(figure, plot) {
  const { group, rows } = rowsOf(figure), wide = figure.classList.contains("wide");
  const height = Math.max(wide ? 460 : state.print ? 250 : 290, 80 + 15 * rows.length);
  const { width, root } = canvasOf(plot, figure, height, `nats lost by round, ${data.losses[group].title}`);
  const room = Math.min(Math.max(...rows.map((row) => textWidth(labelOf(row)))) * 1.09, width * 0.42);
  const frame = [52, 22, width - room - 20, height - 34];
  const last = Math.max(...rows.map((r) => r.rounds.length)), most = Math.max(...rows.flatMap((r) => r.rounds.map(lostIn)), 0.01);
  const least = 1e-3, span = Math.log10(most / least);
  const x = (r) => frame[0] + 10 + (r / Math.max(last - 1, 1)) * (frame[2] - frame[0] - 20);
  const y = (v) => frame[3] - (Math.log10(Math.max(v, least) / least) / span) * (frame[3] - frame[1] - 6);
  for (const t of [0.001, 0.01, 0.1, 1, 10, 100, 1000].filter((v) => v <= most)) {
    root.append(line("grid", frame[0], y(t), frame[2], y(t)), text("end", frame[0] - 6, y(t) + 4, t === least ? `≤ ${t}` : t));
  }
  for (let r = 0; r < last; r += Math.max(1, Math.ceil((last * 24) / (frame[2] - frame[0])))) root.append(text("mid", x(r), frame[3] + 15, r + 1));
  root.append(line("axis", frame[0], frame[3], frame[2], frame[3]), text("end", frame[2], height - 4, "round"), text("", 6, 11, "nats lost in the round"));
  const points = [];
  for (const row of rows) {
    const d = `M${row.rounds.map((round, r) => `${x(r)},${y(lostIn(round))}`).join("L")}`;
    root.append(svg("path", { class: `series-line fam${familyOf(row)}`, d, "data-s": row.s, "stroke-dasharray": dashOf(rows, row) }));
    row.rounds.forEach((round, r) => points.push({ s: row.s, family: familyOf(row), px: x(r), py: y(lostIn(round)), title: `${labelOf(row)}, round ${r + 1}`, number: nats(lostIn(round)), words: tellRound(row, r) }));
  }
  const nodes = points.map((p) => {
    const node = svg("g", { class: `point fam${p.family}`, "data-s": p.s }), mark = marker(p.family, 3.2, p.px, p.py);
    node.append(mark);
    speak(node, mark, p);
    return node;
  });
  root.append(...nodes);
  const lasts = rows.map((row) => ({ row, px: x(row.rounds.length - 1), py: y(lostIn(row.rounds.at(-1))) }));
  for (const { row, px, py, at } of spread(lasts, frame[1] + 4, frame[3])) {
    root.append(svg("path", { class: `loss-leader fam${familyOf(row)}`, d: `M${px},${py}L${frame[2] + 2},${at}`, "data-s": row.s }));
    root.append(text("label end-label", frame[2] + 6, at + 4, shortened(labelOf(row), room), { "data-s": row.s }));
  }
  rove(nodes);
  nearest(root, width, points);
  plot.replaceChildren(root);
}

function drawLosses(figure) {
  const plot = figure.querySelector(".plot");
  if (!rowsOf(figure).rows.length) plot.replaceChildren(empty("Every sampler of this figure is hidden."));
  else ({ bars: drawBars, rounds: drawRounds, curves: drawCurves })[figure.dataset.view](figure, plot);
}
