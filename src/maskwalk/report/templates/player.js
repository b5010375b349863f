// ---------------------------------------------------------------- the player
// Panes of reels in step: round r of one stands beside round r of the others.
const MOST_TILES = 128;  // longer sequences show their picture alone
const ICONS = { first: "M2,2h3v12h-3zM14,2v12l-8,-6z", back: "M12,2v12l-9,-6z", play: "M3,1l12,7l-12,7z", pause: "M3,2h4v12h-4zM9,2h4v12h-4z", next: "M4,2l9,6l-9,6z", last: "M11,2h3v12h-3zM2,2l8,6l-8,6z" };
const SPEEDS = [0.25, 0.5, 1, 2, 4, 8];

function paneOf(reel, stage) {
  const frames = framesOf(reel), final = frames.at(-1);
  const most = Math.max(1e-9, ...frames.flatMap((cells) => cells.map((cell) => cell.nats || 0)));
  const broken = frames.map((cells) => brokenIn(reel, stage, cells, final));
  const count = element("span", "count"), badge = element("span", "badge"), said = element("span"), told = element("p", "told", said), scene = element("div", "stage");
  const node = element("article", stage.kind === "graph" ? "pane walked" : "pane", element("header", "", element("h3", "", reel.label + (reel.kind === "shaped" ? MARK : "")), badge, count), scene);
  node.querySelector("h3").title = reel.spec || "";
  const { show, light, spots = [] } = stages[stage.kind](scene, stage, frames, most);
  const tiles = final.length > MOST_TILES ? [] : final.map(() => element("div", "tile-of", element("span", "fog"), element("b"), element("small"), element("i")));
  const longest = Math.max(...final.map((cell) => (cell.token == null ? 1 : signOf(stage, cell.token).length)));
  const strip = element("div", "strip-of", ...tiles);
  const least = clamp(longest * 8 + 9, 24, 60);
  new ResizeObserver(([entry]) => {  // rows of equal length
    const most = Math.max(1, Math.floor((entry.contentRect.width + 3) / (least + 3)));
    strip.style.setProperty("--across", Math.ceil(tiles.length / Math.ceil(tiles.length / most)));
  }).observe(strip);
  let now = 0;
  tiles.forEach((tile, i) => tile.style.setProperty("--t", final.length > 1 ? i / (final.length - 1) : 0));
  const titleOf = (i) => `position ${i}${frames[now][i].token == null ? "" : `: ${signOf(stage, frames[now][i].token).trim()}`}`;
  let spoken = null;  // the position that speaks
  const hush = () => { if (spoken != null) { light(frames[now][spoken], false, spoken); hideTip(); } spoken = null; };
  const tell = (i, event) => { hush(); spoken = i; light(frames[now][i], true, i); showTip(titleOf(i), wordsOf(stage, frames[now][i]), event.clientX, event.clientY); };
  // A position speaks on the strip and in the picture; a spot may hold a different one in every round.
  [...tiles.entries(), ...spots].forEach(([place, tile]) => {
    const enter = (event) => { const i = typeof place === "function" ? place(frames[now]) : place; if (i >= 0) tell(i, event); };
    tile.addEventListener("pointerenter", enter);
    tile.addEventListener("click", enter);  // a tap
    tile.addEventListener("pointerleave", (event) => { if (event.pointerType === "mouse") hush(); });
  });
  node.addEventListener("pointerdown", (event) => { if (event.pointerType !== "mouse") hush(); });
  if (tiles.length && stage.kind !== "text") node.append(strip);
  const captionOf = (r) => toldOf(reel, stage, frames, r, broken[r], r ? broken[r - 1] : new Set());
  const fullest = frames.map((_, r) => captionOf(r).map(([words]) => words).join("")).reduce((a, b) => (b.length > a.length ? b : a), "");
  told.append(Object.assign(element("span", "room", fullest), { ariaHidden: "true" }));  // keeps the height of the longest
  node.append(told);
  if (stage.kind === "graph") {
    const corner = scene.appendChild(element("div", "corner"));
    offerFigure(corner, () => scene.querySelector("svg"), () => `${reel.label} round ${now}`);
  }
  const draw = (round) => {
    hush();  // it speaks of the round before
    now = Math.min(round, frames.length - 1);
    const cells = frames[now], bad = broken[now];
    show(cells, bad);
    tiles.forEach((tile, i) => {
      classesOf(tile, cells[i], bad.has(i));
      shade(tile, cells[i], most);
      tile.children[1].textContent = guessOf(stage, cells[i], "·");
      const chance = cells[i].given ? "" : chanceOf(cells[i].token == null ? cells[i].likely?.[1] : cells[i].prob);
      tile.children[2].textContent = `${bad.has(i) ? "✗" : ""}${chance}` || "\u00a0";
    });
    count.textContent = `round ${now} of ${frames.length - 1}${reel.calls && reel.calls !== frames.length - 1 ? `, ${reel.calls} calls` : ""}`;
    const done = now === frames.length - 1;
    badge.className = `badge${bad.size ? " bad" : done && reel.valid ? " fine" : ""}`;
    badge.textContent = bad.size ? `${bad.size} broken` : !done ? `${cells.filter((c) => c.token == null).length} masked` : reel.valid ? "possible" : "done";
    said.replaceChildren(...captionOf(now).map(([words, alarm]) => (alarm ? element("b", "", words) : words)));
  };
  return { node, draw, rounds: frames.length - 1 };
}

function keyOf(name, label, act) {
  const button = element("button", "", svg("svg", { viewBox: "0 0 16 16", "aria-hidden": "true" }, svg("path", { d: ICONS[name] })));
  button.type = "button";
  button.setAttribute("aria-label", label);
  button.title = label;
  button.addEventListener("click", act);
  return button;
}

// Fills a node with panes and a deck. `keys` listens for keys; `moved` hears of a new round or speed.
// Without a round it shows the last one, or, if it `plays` and the reader has nothing against motion, all of them once.
const calm = matchMedia("(prefers-reduced-motion: reduce)");
function player(root, reels, stageFor, { keys = root, round = null, speed = 1, plays = false, moved = () => {} } = {}) {
  const panes = reels.map((reel) => paneOf(reel, stageFor(reel)));
  const last = Math.max(...panes.map((pane) => pane.rounds), 0);
  const state = { round: 0, speed: SPEEDS.includes(speed) ? speed : 1, timer: null, acted: false };
  const beat = () => clamp(14000 / Math.max(last, 1), 260, 1300) / state.speed;
  const range = Object.assign(document.createElement("input"), { type: "range", min: 0, max: last, step: 1 });
  range.setAttribute("aria-label", "Round");
  const said = element("output"), rate = document.createElement("select");
  rate.setAttribute("aria-label", "Speed");
  rate.append(...SPEEDS.map((x) => new Option(`${x}×`, x)));
  const show = () => {
    panes.forEach((pane) => pane.draw(state.round));
    range.value = state.round;
    range.setAttribute("aria-valuetext", `round ${state.round} of ${last}`);
    said.textContent = `round ${state.round} of ${last}`;
    rate.value = state.speed;
    if (state.acted) moved(state.round, state.speed);  // the address holds what a reader chose
  };
  const stop = () => { clearInterval(state.timer); state.timer = null; icon(); };
  const icon = () => { const on = state.timer != null; go.querySelector("path").setAttribute("d", ICONS[on ? "pause" : "play"]); go.setAttribute("aria-label", on ? "Pause" : "Play"); go.title = on ? "Pause (space)" : "Play (space)"; };
  const to = (r) => { state.round = clamp(r, 0, last); show(); };
  const step = (by) => { stop(); to(state.round + by); };
  const start = () => {
    clearInterval(state.timer);
    if (state.round >= last) to(0);
    state.timer = setInterval(() => { to(state.round + 1); if (state.round >= last) stop(); }, beat());
    icon();
  };
  const toggle = () => (state.timer == null ? start() : stop());
  const pace = (by) => { state.speed = SPEEDS[clamp(SPEEDS.indexOf(state.speed) + by, 0, SPEEDS.length - 1)]; show(); if (state.timer != null) start(); };
  const go = keyOf("play", "Play", toggle);
  go.className = "go";
  const buttons = [keyOf("first", "First round (Home)", () => step(-last)), keyOf("back", "One round back (←)", () => step(-1)), go, keyOf("next", "One round on (→)", () => step(1)), keyOf("last", "Last round (End)", () => step(last))];
  range.addEventListener("input", () => { stop(); to(+range.value); });
  rate.addEventListener("change", () => { state.speed = +rate.value; show(); if (state.timer != null) start(); });
  const deck = element("div", "deck", element("div", "keys", ...buttons), range, said, element("label", "pace", element("span", "", "speed "), rate));
  deck.setAttribute("role", "group");
  deck.setAttribute("aria-label", "Player");
  const acts = { " ": toggle, ArrowRight: () => step(1), ArrowLeft: () => step(-1), Home: () => step(-last), End: () => step(last), "+": () => pace(1), "-": () => pace(-1) };
  const open = (r) => {
    const plain = r == null, moving = plain && plays && !calm.matches;
    state.acted = false;
    to(moving ? 0 : plain ? last : Math.round(r) || 0);
    if (moving && document.hidden) document.addEventListener("visibilitychange", () => { if (!state.acted) start(); }, { once: true });
    else if (moving) start();
  };
  for (const type of ["pointerdown", "keydown", "input"]) root.addEventListener(type, () => { state.acted = true; }, true);
  const press = (event) => {
    const act = acts[event.key], field = event.target.closest?.("select, textarea, input:not([type=range])");
    if (!act || field || event.ctrlKey || event.metaKey || event.altKey || (event.key === " " && event.target.closest?.("button"))) return;
    event.preventDefault();
    state.acted = true;
    act();
  };
  keys.addEventListener("keydown", press);
  root.classList.add("player");
  root.replaceChildren(element("div", "panes", ...panes.map((pane) => pane.node)), deck);
  open(round);
  return { stop, go: (r, pace) => { stop(); if (SPEEDS.includes(pace)) state.speed = pace; open(r); }, leave: () => { stop(); keys.removeEventListener("keydown", press); } };
}
