// ---------------------------------------------------------------- worlds as pictures
// A stage is drawn once into a node; the function returned shows a frame: (cells, broken).
const stages = { graph: graphStage, grid: gridStage, sum: sumStage, text: textStage, words: textStage };

function classesOf(node, cell, isBad) {
  for (const [name, is] of Object.entries({ on: cell.token != null, masked: cell.token == null, given: cell.given, new: cell.isNew, bad: isBad })) node.classList.toggle(name, is);
}
const LEAST_INK = 0.62;  // of a guess: the contrast of what can be read
// How uncertain and how sure: the heights and shades of what is masked.
function shade(node, cell, most) {
  node.style.setProperty("--h", cell.nats == null ? 0 : (cell.nats / most).toFixed(3));
  node.style.setProperty("--sure", cell.likely ? (LEAST_INK + (1 - LEAST_INK) * (cell.likely[1] ?? 0)).toFixed(2) : LEAST_INK);
}
const guessOf = (stage, cell, blank) => (cell.token != null ? signOf(stage, cell.token) : cell.likely ? signOf(stage, cell.likely[0]) : blank);

function graphStage(root, stage, frames) {
  const place = new Map(stage.nodes.map((node, k) => [node, [stage.places[2 * k], stage.places[2 * k + 1]]]));
  const own = new Set(frames.flatMap((cells) => cells.map((cell) => cell.token)).filter((token) => token != null));
  const xs = stage.places.filter((_, k) => k % 2 === 0), ys = stage.places.filter((_, k) => k % 2 === 1);
  const pad = 46, wide = Math.max(Math.max(...xs) + 2 * pad, 640), high = Math.max(Math.max(...ys) + 2 * pad, wide * 0.48);
  const [left, top] = [(wide - Math.max(...xs)) / 2, (high - Math.max(...ys)) / 2];
  const at = (node) => [place.get(node)[0] + left, place.get(node)[1] + top];
  const picture = svg("svg", { viewBox: `0 0 ${wide} ${high.toFixed(0)}`, role: "img", "aria-label": "The part of the graph that the walks use" });
  for (let k = 0; k < stage.edges.length; k += 2) {
    const [a, b] = [at(stage.nodes[stage.edges[k]]), at(stage.nodes[stage.edges[k + 1]])];
    picture.append(line("near", ...a, ...b));
  }
  for (const node of stage.nodes) picture.append(svg("circle", { class: "dot", cx: at(node)[0], cy: at(node)[1], r: own.has(node) ? 9 : 6 }));
  const spans = Array.from({ length: stage.edges.length / 2 }, (_, k) => [0, 1].map((end) => at(stage.nodes[stage.edges[2 * k + end]]))).map(([[x, y], [u, v]]) => Math.hypot(x - u, y - v)).sort((a, b) => a - b);
  const r = clamp(0.31 * (spans[Math.floor(spans.length / 2)] ?? 90), 20, 27);  // short edges, as of trees, stay in sight
  const length = frames[0].length, tone = (i) => `--t:${length > 1 ? (i / (length - 1)).toFixed(3) : 0}`;
  const lines = Array.from({ length }, (_, i) => svg("path", { class: "step", style: tone(i) }));
  const cuts = Array.from({ length }, () => svg("text", { class: "cut", style: "font-size:38px" }, "✗"));
  const first = new Map();
  frames.at(-1).forEach(({ token }, i) => { if (token != null && !first.has(token)) first.set(token, i); });
  const nodes = new Map([...own].map((node) => [node, svg("g", { class: "node", style: tone(first.get(node) ?? 0), transform: `translate(${at(node)})` },
    svg("circle", { r }), svg("text", { y: 0.3 * r, style: `font-size:${(signOf(stage, node).length > 3 ? 0.63 : 0.8) * r}px` }, signOf(stage, node)))]));
  picture.append(...lines, ...cuts, ...nodes.values());
  root.append(picture);
  const show = (cells, broken) => {
    for (const node of nodes.values()) node.setAttribute("class", "node");
    cells.forEach((cell, i) => {
      const node = nodes.get(cell.token);
      if (node) for (const [name, is] of [["on", true], ["given", cell.given], ["new", cell.isNew], ["bad", broken.has(i)]]) if (is) node.classList.add(name);
      const from = i ? cells[i - 1] : null, drawn = i > 0 && from.token != null && cell.token != null;
      lines[i].setAttribute("class", `step${drawn ? " on" : ""}${drawn && (cell.isNew || from.isNew) ? " new" : ""}${broken.has(i) ? " bad" : ""}`);
      if (drawn) lines[i].setAttribute("d", arc(at(from.token), at(cell.token)));
      cuts[i].classList.toggle("on", drawn && broken.has(i));
      if (drawn) {
        const [x, y] = clearing(at(from.token), at(cell.token), [...own].map(at));
        cuts[i].setAttribute("x", x);
        cuts[i].setAttribute("y", y + 13);
      }
    });
  };
  const light = (cell, is) => nodes.get(cell.token)?.classList.toggle("lit", is);
  const spots = [...nodes].map(([token, node]) => [(cells) => cells.findIndex((cell) => cell.token === token), node]);
  return { show, light, spots };
}
// There and back bow to different sides; to stay is a small loop.
const bow = ([x, y], [u, v]) => [(x + u) / 2 + (v - y) * 0.07, (y + v) / 2 - (u - x) * 0.07];
// The place on an arc, as near its middle as can be, or beside it, where no node covers a mark; if there is none, the one
// that is furthest from them.
const CLEAR = 44, BESIDE = 30;
function clearing(a, b, nodes) {
  const m = bow(a, b), far = Math.hypot(b[0] - a[0], b[1] - a[1]);
  if (!far) return [a[0], a[1] - 62];  // the top of a loop
  const along = (t) => [0, 1].map((k) => (1 - t) ** 2 * a[k] + 2 * t * (1 - t) * m[k] + t ** 2 * b[k]);
  const across = [(a[1] - b[1]) / far, (b[0] - a[0]) / far];
  const room = ([x, y]) => Math.min(...nodes.map(([u, v]) => Math.hypot(x - u, y - v)));
  const on = [0.5, 0.42, 0.58, 0.34, 0.66, 0.26, 0.74].map(along);
  const near = [BESIDE, -BESIDE].flatMap((off) => on.map(([x, y]) => [x + off * across[0], y + off * across[1]]));
  return [...on, ...near].find((p) => room(p) > CLEAR) || [...on, ...near].reduce((best, p) => (room(p) > room(best) ? p : best));
}
function arc([x, y], [u, v]) {
  if (x === u && y === v) return `M${x - 12},${y - 24}C${x - 52},${y - 74} ${x + 52},${y - 74} ${x + 12},${y - 24}`;
  const [mx, my] = bow([x, y], [u, v]);
  return `M${x},${y}Q${mx.toFixed(1)},${my.toFixed(1)} ${u},${v}`;
}

function gridStage(root, stage, frames, most) {
  const { rows, columns, box: size, colours } = stage;
  const picture = element("div", "cells");
  picture.style.gridTemplateColumns = `repeat(${columns}, 1fr)`;
  picture.style.setProperty("--many", columns * columns);
  picture.style.setProperty("--wide", `${clamp(columns * 58, 180, columns > rows ? 900 : 430)}px`);
  const nodes = stage.cells.map((i, k) => {
    const node = element("div", "cell-of"), [y, x] = [Math.floor(k / columns), k % columns];
    node.classList.toggle("right", Boolean(size) && (x + 1) % size === 0 && x + 1 < columns);
    node.classList.toggle("below", Boolean(size) && (y + 1) % size === 0 && y + 1 < rows);
    for (const [name, is] of [["end", x + 1 === columns], ["foot", y + 1 === rows], ["painted", Boolean(colours)]]) node.classList.toggle(name, is);
    return node;
  });
  picture.append(...nodes);
  root.append(picture);
  const show = (cells, broken) => stage.cells.forEach((i, k) => {
    classesOf(nodes[k], cells[i], broken.has(i));
    shade(nodes[k], cells[i], most);
    if (colours) nodes[k].style.setProperty("--t", colours > 1 && cells[i].token != null ? cells[i].token / (colours - 1) : 0);
    nodes[k].textContent = guessOf(stage, cells[i], "");
  });
  const light = (cell, is, i) => nodes[stage.cells.indexOf(i)]?.classList.toggle("lit", is);
  return { show, light, spots: stage.cells.map((i, k) => [i, nodes[k]]) };
}

// Two operands, a rule and the sum; a carry stands above a column once all below it are known.
function sumStage(root, stage, frames, most) {
  const [a, b, c] = stage.lines, columns = c.length;
  const picture = element("div", "sum");
  picture.style.gridTemplateColumns = `repeat(${columns + 1}, auto)`;
  picture.style.setProperty("--columns", columns + 1);
  const carries = c.map(() => element("div", "cell-of carry"));
  const digits = new Map([...a, ...b, ...c].map((i) => [i, element("div", "cell-of")]));
  const row = (sign, positions) => [element("div", "cell-of sign", sign), ...Array.from({ length: columns - positions.length }, () => element("div", "cell-of sign")), ...positions.map((i) => digits.get(i))];
  picture.append(element("div", "cell-of sign carry"), ...carries, ...row("", a), ...row("+", b), element("div", "rule"), ...row("=", c));
  root.append(picture);
  const show = (cells, broken) => {
    for (const [i, node] of digits) {
      classesOf(node, cells[i], broken.has(i));
      shade(node, cells[i], most);
      node.textContent = guessOf(stage, cells[i], "");
    }
    let carry = 0;
    for (let k = 0; k < columns; k += 1) {
      carries[columns - 1 - k].textContent = k > 0 && carry ? carry : "";
      const [x, y] = [a, b].map((line) => (k < line.length ? cells[line[line.length - 1 - k]].token : 0));
      carry = x == null || y == null || carry == null ? null : Math.floor((x + y + carry) / stage.base);
    }
  };
  const light = (cell, is, i) => digits.get(i)?.classList.toggle("lit", is);
  return { show, light, spots: [...digits] };
}

// A text, or signs in a line. In a text a piece has its probability below it; all blanks are equally wide,
// for the width of the token that comes would tell it.
function textStage(root, stage, frames, most) {
  const prose = stage.kind === "text", picture = element("div", prose ? "prose" : "line-of");
  const wide = !prose && frames.at(-1).some((cell) => cell.token != null && signOf(stage, cell.token).length > 1);
  const nodes = frames[0].map(() => (prose ? element("ruby", "piece", element("span"), element("rt")) : element("span", "piece")));
  const breaks = nodes.map(() => element("span"));  // lines end outside of pieces
  nodes.forEach((node, i) => picture.append(...(prose ? [breaks[i]] : []), node, wide ? " " : ""));
  root.append(picture);
  const show = (cells, broken) => cells.forEach((cell, i) => {
    classesOf(nodes[i], cell, broken.has(i));
    shade(nodes[i], cell, most);
    if (!prose) { nodes[i].textContent = guessOf(stage, cell, "·"); return; }
    const words = cell.token == null ? BLANK : signOf(stage, cell.token);
    breaks[i].textContent = words.match(/^\n*/)[0] || (cell.token == null || /^\s/.test(words) ? "\u200b" : "");  // a line may end here
    nodes[i].children[0].textContent = words.replace(/^\n+/, "").replaceAll("\n", "⏎");
    nodes[i].children[1].textContent = cell.given ? "" : chanceOf(cell.token == null ? cell.likely?.[1] : cell.prob);
  });
  const light = (cell, is, i) => nodes[i].classList.toggle("lit", is);
  return { show, light, spots: [...nodes.entries()] };
}
const BLANK = "\u2007".repeat(4);  // as wide as four digits
