// ---------------------------------------------------------------- a reel, frame by frame
// A reel is {label, given, steps, ahead, valid}: see report/player/reels.py. Frame r is the canvas after r rounds.
function framesOf(reel) {
  const start = reel.given.map((token) => ({ token, given: token != null, round: 0, prob: null, nats: null, isNew: false }));
  const frames = [start];
  reel.steps.forEach((step, r) => {
    const cells = frames[r].map((cell) => ({ ...cell, isNew: false }));
    for (const [i, token, prob, nats] of step) cells[i] = { token, given: false, round: r + 1, prob, nats, isNew: token != null };
    frames.push(cells);
  });
  frames.forEach((cells, r) => {
    for (const [i, nats, ...likely] of (reel.ahead || [])[r] || []) Object.assign(cells[i], { nats, likely });
  });
  return frames;
}

const isWhole = (cells) => cells.every((cell) => cell.token != null);
// Position i is shown as broken once what breaks there can be seen; a token that is replaced later never is.
function brokenIn(reel, stage, cells, final) {
  const bad = new Set();
  if (!reel.valid) return bad;
  const settled = (i) => i >= 0 && cells[i].token != null && cells[i].token === final[i].token;
  const whole = isWhole(cells);
  [...reel.valid].forEach((fine, i) => {
    if (fine === "1" || !settled(i)) return;
    if (whole || (stage.kind === "graph" && (i === 0 || settled(i - 1))) || (stage.kind === "grid" && clashes(stage, cells, i))) bad.add(i);
  });
  return bad;
}
function clashes({ columns, box, cells: order }, cells, i) {
  const at = order.indexOf(i), [row, column] = [Math.floor(at / columns), at % columns];
  const boxOf = (y, x) => (box ? `${Math.floor(y / box)},${Math.floor(x / box)}` : null);
  return order.some((j, k) => {
    const [y, x] = [Math.floor(k / columns), k % columns];
    return j !== i && cells[j].token === cells[i].token && (y === row || x === column || (box && boxOf(y, x) === boxOf(row, column)));
  });
}

const signOf = (stage, token) => (stage.names && stage.names[token]) ?? (stage.signs && stage.signs[token]) ?? String(token);
const chanceOf = (p) => (p == null ? "" : p >= 0.9995 ? "1" : p < 0.005 ? "<.01" : p.toFixed(2).replace("0.", "."));

// What a position says of itself, in lines.
function wordsOf(stage, cell) {
  if (cell.given) return "given";
  const unsure = cell.nats == null ? [] : [`entropy ${cell.nats.toFixed(2)} nats${cell.token == null ? "" : " when it was drawn"}`];
  if (cell.token != null) return [`revealed in round ${cell.round}`, ...(cell.prob == null ? [] : [`probability ${chanceOf(cell.prob)} when it was drawn`]), ...unsure].join("\n");
  const likely = (cell.likely || []).flatMap((x, k, all) => (k % 2 ? [] : [`${signOf(stage, x).trim()} ${chanceOf(all[k + 1])}`]));
  return ["masked", ...unsure, ...(likely.length ? [`likeliest: ${likely.join(", ")}`] : [])].join("\n");
}

// What a round did, in a sentence or two: [text, isAlarm] pieces.
function toldOf(reel, stage, frames, r, broken, before) {
  const last = frames.length - 1;
  if (r === 0) {
    const given = frames[0].filter((cell) => cell.given).length;
    return [[given ? `${given} of ${frames[0].length} tokens are given; the others are masked.` : `All ${frames[0].length} positions are masked.`, false]];
  }
  const fresh = frames[r].flatMap((cell, i) => (cell.isNew ? [i] : []));
  const back = frames[r].flatMap((cell, i) => (cell.token == null && frames[r - 1][i].token != null ? [i] : []));
  const some = fresh.length > 8 ? "" : ` (${fresh.length === 1 ? "position" : "positions"} ${fresh.join(", ")})`;
  const out = [[`${fresh.length === 1 ? "One token" : `${fresh.length} tokens`} drawn${fresh.length > 1 ? " at once" : ""}${some}${back.length ? `, ${back.length} masked again` : ""}. `, false]];
  const rare = fresh.filter((i) => frames[r][i].prob != null).sort((a, b) => frames[r][a].prob - frames[r][b].prob)[0];
  if (rare != null && fresh.length > 1 && frames[r][rare].prob < 0.5) out.push([`Least likely: ${signOf(stage, frames[r][rare].token).trim()} at ${rare}, probability ${chanceOf(frames[r][rare].prob)}. `, false]);
  const now = [...broken].filter((i) => !before.has(i));
  if (now.length) out.push([`${breakOf(stage, frames[r], now)} `, true]);
  if (r === last && reel.valid) out.push(endOf(stage, broken.size));
  return out;
}
// What the whole sequence came to: [text, isAlarm].
function endOf(stage, broken) {
  const few = (one, more) => (broken === 1 ? one : `${broken} ${more}`);
  if (stage.kind === "graph") return broken ? [few("One step of this walk does not exist.", "steps of this walk do not exist."), true] : ["Every step of this walk exists.", false];
  if (stage.kind === "sum") return broken ? [`The sum is wrong in ${few("one digit", "digits")}.`, true] : ["The sum is right.", false];
  if (stage.kind === "grid") return broken ? [few("One cell is impossible.", "cells are impossible."), true] : ["Every cell is possible.", false];
  return broken ? [few("One token is impossible.", "tokens are impossible."), true] : ["Every token is possible.", false];
}
function breakOf(stage, cells, now) {
  const [i] = now, more = now.length - 1;
  if (stage.kind === "graph" && i > 0) return `${signOf(stage, cells[i - 1].token)} → ${signOf(stage, cells[i].token)}: no such step${more ? `, and ${more === 1 ? "one other" : `${more} others`} like it` : ""}.`;
  return `${signOf(stage, cells[i].token).trim()} at position ${i} is impossible${more ? `, and so ${more === 1 ? "is one other" : `are ${more} others`}` : ""}.`;
}
