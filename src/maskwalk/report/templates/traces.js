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
    const wrong = valid ? valid.indexOf("0") : -1, selected = cell.s === state.sampler;
    const said = !valid ? "nobody can check it" : wrong < 0 ? "no impossible step" : `first impossible step at position ${wrong}`;
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
  const { tokens, rounds, valid, nats } = cell.trace, { number, last, tone } = roundsOf(cell.trace);
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
    const unsure = nats[i] == null ? "" : `\nuncertain by ${fixed(nats[i], 2)} nats when drawn`;
    const said = (r < 0 ? "given" : `revealed in round ${number(r)}`) + unsure;
    node.addEventListener("pointermove", (event) => showTip(`position ${i}: token ${tokens[i]}`, said, event.clientX, event.clientY));
    node.addEventListener("pointerleave", hideTip);
    root.append(node);
  });
  const wrong = valid ? valid.indexOf("0") : -1;
  [...(valid || "")].forEach((ok, i) => {
    const x = left + i * w - 0.5;
    if (ok === "0") root.append(line(i === wrong ? "wrong" : "late-wrong", x, i === wrong ? top - 3 : walk - 3, x, walk + 23));
  });
  const step = wrong ? `first impossible step: ${tokens[wrong - 1]} → ${tokens[wrong]}` : `impossible start: ${tokens[0]}`;
  const said = !valid ? "" : wrong < 0 ? "every step is possible" : step;
  const span = textWidth(said) * 1.1 + 6;
  const x = wrong < 0 ? left : clamp(left + wrong * w - span / 2, 0, left + length * w - span);
  root.append(text("", 0, walk + 14, "sequence"), text(wrong < 0 ? "" : "alarm", x, walk + 38, said));
  byId("trace").replaceChildren(root);
}

function drawTraces() {
  const traced = data.cells.filter((c) => c.m === state.mode && c.trace), panels = new Set(traced.map((c) => c.p));
  if (!panels.has(state.panel)) state.panel = Math.min(...panels);
  const menu = byId("trace-panel");
  menu.replaceChildren(...data.panels.flatMap((p, i) => (panels.has(i) ? [new Option(`${p.title}, ${p.task}`, i, false, i === state.panel)] : [])));
  menu.disabled = !panels.size;
  const cells = traced.filter((c) => c.p === state.panel).sort((a, b) => a.s - b.s);
  const choice = byId("trace-sampler");
  choice.replaceChildren(...cells.map((c) => new Option(labelOf(c), c.s)));
  choice.disabled = !cells.length;
  byId("strips").replaceChildren(empty("This page has no traces here."));
  byId("trace").replaceChildren();
  if (!cells.length) return;
  const cell = cells.find((c) => c.s === state.sampler) || cells[0];
  choice.value = state.sampler = cell.s;
  drawStrips(cells);
  byId("trace").classList.toggle("drawn", "pictures" in cell.trace);
  if (cell.trace.pictures) drawPictures(cell);
  else drawTrace(cell);
}
function chooseSampler(s) { state.sampler = +s; drawTraces(); }
