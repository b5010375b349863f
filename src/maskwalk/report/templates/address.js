// ---------------------------------------------------------------- the address remembers
// #section&mode=1&scale=linear&hide=3.4&panel=2&round=5: what a reader chose, so that a link shows the same.
const place = { section: "", ready: false };
function read() {
  const [section, ...rest] = location.hash.slice(1).split("&");
  const isState = section.includes("=");
  place.section = isState ? "" : section;
  return new URLSearchParams((isState ? [section, ...rest] : rest).join("&"));
}
function remember() {
  if (!place.ready) return;
  const words = new URLSearchParams();
  if (state.mode) words.set("mode", state.mode);
  if (!state.log) words.set("scale", "linear");
  if (state.hidden.size) words.set("hide", [...state.hidden].sort((a, b) => a - b).join("."));
  if (document.documentElement.dataset.theme) words.set("theme", document.documentElement.dataset.theme);
  if (data.casts.length && watch.panel !== watch.first) words.set("panel", watch.panel);
  if (watch.round != null) words.set("round", watch.round);
  const said = [place.section, String(words)].filter(Boolean).join("&");
  history.replaceState(null, "", said || location.hash ? `#${said}` : location.href);
}
// What an address asks for; a number that is none of this page's is left alone.
function asked() {
  const words = read(), among = (name, count) => { const n = Number(words.get(name)); return words.has(name) && Number.isInteger(n) && n >= 0 && n < count ? n : null; };
  state.mode = among("mode", data.modes.length) ?? 0;
  state.log = words.get("scale") !== "linear";
  state.hidden.clear();
  for (const s of (words.get("hide") || "").split(".").filter(Boolean).map(Number)) if (data.samplers[s]) state.hidden.add(s);
  document.documentElement.dataset.theme = ["light", "dark"].includes(words.get("theme")) ? words.get("theme") : "";
  watch.panel = among("panel", data.panels.length) ?? watch.first;
  const checks = { mode: state.mode, scale: state.log ? "log" : "linear", theme: document.documentElement.dataset.theme || "" };
  for (const [name, value] of Object.entries(checks)) for (const input of all(`input[name="${name}"]`)) input.checked = input.value === String(value);
  return among("round", 100000);
}
// A link within the page keeps what was chosen; an address with choices, pasted into the same tab, is followed.
addEventListener("hashchange", () => {
  if (!String(read())) { remember(); return; }
  follow();
  remember();
});
function follow() {
  const round = asked();
  setMode(state.mode);
  show([], true);
  if (byId("watch") && round != null) drawWatch(round);
  if (!place.section) return;
  byId(place.section)?.querySelector(".fold")?.setAttribute("open", "");
  byId(place.section)?.scrollIntoView();
}
