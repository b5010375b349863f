// ---------------------------------------------------------------- the page of `maskwalk play`
const told = new URLSearchParams(location.hash.slice(1));
const about = { keys: document, round: told.get("round"), speed: +told.get("speed") || 1, plays: true };
about.moved = (round, speed) => {
  const words = new URLSearchParams({ round, ...(speed !== 1 ? { speed } : {}) });
  history.replaceState(null, "", `#${words}`);
};
on(all("#theme input"), "change", (input) => { document.documentElement.dataset.theme = input.value; });
const shown = player(byId("player"), data.reels, () => data.stage, about);
addEventListener("hashchange", () => {  // an address pasted into the same tab
  const words = new URLSearchParams(location.hash.slice(1));
  shown.go(words.get("round"), +words.get("speed") || 1);
});
