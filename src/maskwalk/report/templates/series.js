// ---------------------------------------------------------------- lines against a parameter
const END = 12;  // pixels a label at the end of a line takes

// Labels beside the ends of lines, the best first: equal ends share one, and one that would cover
// another moves a little; where it would have to move far it is left out and speaks when pointed at.
function endLabels(ends, top, bottom) {
  const kept = [];
  for (const end of ends) {
    const same = kept.find((label) => Math.abs(label.y - end.y) < 1.5);
    if (same) { same.more += 1; continue; }
    const free = [0, 1, -1, 2, -2, 3].map((step) => end.y + (step * END) / 1.5)
      .find((at) => at >= top - 4 && at <= bottom + 4 && kept.every((label) => Math.abs(label.at - at) >= END));
    if (free != null) kept.push({ ...end, at: free, more: 0 });
  }
  return kept;
}

// At how many heights lines begin (0) or end (-1).
const apart = (lines, end) => new Set(lines.map((l) => l.points.at(end).v.toFixed(2))).size;

function drawSeries(figure) {
  const shown = data.series[+figure.dataset.series], plot = figure.querySelector(".plot");
  const { metric } = shown, wide = figure.classList.contains("wide"), cost = metric.plain;
  const here = shown.lines.filter((l) => l.m === state.mode);
  const lines = here
    .map((l) => ({ ...l, points: l.points.filter((p) => !state.hidden.has(p.s)) }))
    .filter((l) => l.points.length);
  if (!lines.length) {
    plot.replaceChildren(empty(here.length ? "Every sampler of this figure is hidden." : "Not measured in this mode."));
    return;
  }
  const width = state.print ? (wide ? 720 : 350) : Math.max(plot.clientWidth, 280);
  const height = wide ? 460 : state.print ? 250 : 290;
  const room = Math.min(Math.max(...lines.map((l) => textWidth(`${l.label} +9`))) + 18, width * 0.45);
  const early = apart(lines, 0) > 2 * apart(lines, -1);  // told apart at their beginnings only: labels stand there
  const frame = [44, 26, early ? width - 12 : width - room, height - 34];
  const inset = early ? room : 14;
  const points = shown.lines.flatMap((l) => l.points);
  const across = (v) => (shown.log ? Math.log2(v) : v);
  const xs = [...new Set([...points.map((p) => p.x), ...shown.marks.map((m) => m[0])])].filter((v) => v != null).sort((a, b) => a - b);
  const [low, high] = [across(xs[0]), across(xs.at(-1))];
  const x = (v) => frame[0] + inset + ((across(v) - low) / (high - low || 1)) * (frame[2] - frame[0] - inset - 14);
  const logY = cost && state.log;
  const up = (v) => (logY ? Math.log2(Math.max(v, 1)) : v);
  const reach = points.flatMap(ends), [least, most] = [Math.min(...reach), Math.max(...reach)];
  const limits = cost ? [logY ? up(Math.max(least, 1)) - 0.2 : 0, up(most) * 1.04] : metric.share ? [0, 1] : [Math.min(least, 0), most * 1.04];
  const y = (v) => frame[3] - ((up(v) - limits[0]) / (limits[1] - limits[0] || 1)) * (frame[3] - frame[1]);
  const yTicks = logY ? stops.filter((s) => up(s) >= limits[0] && up(s) <= limits[1]) : niceTicks(limits[0], limits[1], 4);
  const root = svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "group", "aria-label": `${shown.title}, ${shown.task}: ${shown.y} against ${shown.axis}` });
  for (const t of yTicks) root.append(line("grid", frame[0], y(t), frame[2], y(t)), text("end", frame[0] - 6, y(t) + 4, t));
  let last = -Infinity;
  for (const t of xs) {
    if (x(t) - last < textWidth(String(t)) + 8) continue;
    last = x(t);
    root.append(line("grid", x(t), frame[1], x(t), frame[3]), text("mid", x(t), frame[3] + 15, t));
  }
  root.append(line("axis", frame[0], frame[3], frame[2], frame[3]), text("end", frame[2], height - 4, shown.axis), text("", 6, 11, shown.y));
  for (const [at, words] of shown.marks) root.append(line("mark-line", x(at), frame[1] - 6, x(at), frame[3]), text("mid mark-name", x(at), frame[1] - 9, words));

  const marks = [];
  for (const one of lines) {
    const level = one.points[0].x == null;
    const d = level
      ? `M${frame[0]},${y(one.points[0].v)}H${frame[2]}`
      : `M${one.points.map((p) => `${x(p.x)},${y(p.v)}`).join("L")}`;
    const own = one.points.map((p) => p.s).join(" ");
    root.append(svg("path", { class: `series-line fam${one.family}${level ? " level" : ""}`, d, "data-s": own }));
    for (const p of one.points) marks.push({ ...p, family: one.family, px: level ? frame[2] : x(p.x), py: y(p.v), own });
  }
  const nodes = marks.map((p) => {
    const node = svg("g", { class: `point fam${p.family}`, "data-s": p.own });
    const [low, high] = ends(p);
    if (high > low) node.append(line("error", p.px, y(Math.max(low, logY ? 1 : limits[0])), p.px, y(high)));
    const mark = marker(p.family, wide ? 4.8 : 3.8, p.px, p.py);
    node.append(mark);
    const at = p.x == null ? "" : `${shown.axis} ${p.x}\n`;
    const n = p.n == null ? "" : `${counted(p.n)}; `;
    Object.assign(p, { title: data.samplers[p.s].label + (p.shaped ? MARK : ""), number: estimated(metric, p), words: `${at}${shown.y} ${estimated(metric, p)}\n${p.shaped ? `${MARK} shaped\n` : ""}${n}${INTERVAL}` });
    speak(node, mark, p);
    return node;
  });
  root.append(...nodes);
  rove(nodes);
  const end = early ? 0 : -1, order = lines.map((l) => ({ l, v: l.points.at(end).v })).sort((a, b) => b.v - a.v);
  const best = order.map(({ l, v }) => ({ words: l.label, y: y(v), own: l.points.map((p) => p.s).join(" ") }));
  const [from, to, words] = early ? [x(xs[0]) - 5, x(xs[0]) - 10, "label end-label end"] : [frame[2] + 3, frame[2] + 9, "label end-label"];
  for (const label of endLabels(best, frame[1], frame[3])) {
    if (Math.abs(label.at - label.y) > 3) root.append(line("leader", from, label.y, to, label.at));
    root.append(text(words, to + (early ? -2 : 2), label.at + 4, label.words + (label.more ? ` +${label.more}` : ""), { "data-s": label.own }));
  }
  nearest(root, width, marks);
  plot.replaceChildren(root);
}
