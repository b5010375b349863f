// ---------------------------------------------------------------- the player of a report
// Reels are made from the traces of the cells; a trace keeps what each round revealed for good.
const watch = { panel: 0, chosen: new Map(), player: null, round: null };
function reelOf(cell) {
  const { tokens, rounds, nats, probs, valid } = cell.trace, { number, last } = roundsOf(cell.trace);
  const steps = Array.from({ length: last }, () => []);
  rounds.forEach((r, i) => { if (r >= 0) steps[number(r) - 1].push([i, tokens[i], probs ? probs[i] : null, nats[i]]); });
  const given = tokens.map((token, i) => (rounds[i] < 0 ? token : null));
  return { given, steps, valid };
}
// Of what was played again when the page was written, the page holds the reels.
function reelIn(cast, s) {
  const cell = cellOf(cast, s), reel = cast.reels ? cast.reels[cast.s.indexOf(s)] : reelOf(cell);
  return { ...reel, label: labelOf(cell), spec: data.samplers[s].spec };
}
const castsOf = (mode) => data.casts.filter((c) => c.m === mode);
const cellOf = (cast, s) => data.cells.find((c) => c.m === cast.m && c.p === cast.p && c.s === s);

// Two to begin with: what was evaluated and a bisection, or a possible sequence in few rounds and one that breaks.
function firstPair(cast) {
  const reels = cast.s.map((s) => ({ s, ...reelIn(cast, s) })).sort((a, b) => a.steps.length - b.steps.length);
  const fine = reels.find((reel) => reel.valid && !reel.valid.includes("0")), broken = reels.find((reel) => reel.valid?.includes("0"));
  const pair = new Set(cast.first || [fine, broken].filter(Boolean).map((reel) => reel.s));
  for (const s of cast.s) if (pair.size < 2) pair.add(s);
  return cast.s.filter((s) => pair.has(s));
}

function drawWatch(round = null) {
  const here = castsOf(state.mode), choice = byId("watch-panel");
  choice.replaceChildren(...here.map(({ p }) => new Option(`${data.panels[p].title}, ${data.panels[p].task}`, p)));
  watch.player?.leave();
  watch.player = null;
  const cast = here.find((c) => c.p === watch.panel) || here[0];
  choice.disabled = !cast;
  byId("cast").replaceChildren();
  byId("player").replaceChildren(empty("This mode has no traces on this page."));
  if (!cast) return;
  choice.value = watch.panel = cast.p;
  const key = `${cast.m},${cast.p}`, chosen = watch.chosen.get(key) || firstPair(cast);
  byId("cast").append(...cast.s.map((s) => castButton(cast, s, chosen, key)));
  const reels = cast.s.flatMap((s, k) => (chosen.includes(s) ? [{ ...reelIn(cast, s), stage: cast.stages[k] || cast.stages[0] }] : []));
  watch.player = player(byId("player"), reels, (reel) => reel.stage, { round, moved: (r) => { watch.round = r; remember(); } });
}
function castButton(cast, s, chosen, key) {
  const button = element("button", `chip fam${data.samplers[s].family}`, labelOf(cellOf(cast, s)));
  button.type = "button";
  button.setAttribute("aria-pressed", chosen.includes(s));
  button.setAttribute("aria-label", `${button.textContent} on the player`);
  button.addEventListener("click", () => {
    const next = chosen.includes(s) ? chosen.filter((other) => other !== s) : [...chosen, s];
    if (next.length) watch.chosen.set(key, next);
    drawWatch(watch.round);
    byId("cast").children[cast.s.indexOf(s)].focus();
  });
  return button;
}
