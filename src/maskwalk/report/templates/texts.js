// ---------------------------------------------------------------- texts side by side
const picks = all("#texts select[data-side]");
const picked = (pick) => (pick.value === "" ? null : +pick.value);  // null: the reference
const textPlace = () => +(byId("text-panel")?.value ?? 0);  // of data.textPanels
let untouched = true;

function aboutText(cell) {
  const keys = [data.cost, data.quality].filter((key) => key && cell.e[key]);
  const said = keys.map((key) => `${metricOf[key].title} ${estimated(metricOf[key], cell.e[key])}`);
  return said.length ? `${said.join(" · ")} (${INTERVAL})` : "";
}
function drawTexts() {
  const which = +(byId("texts").querySelector("[name='which']:checked")?.value ?? 0);
  const panel = data.textPanels[textPlace()];
  for (const pick of picks) {
    const s = picked(pick), cells = s == null ? data.references : data.cells;
    const cell = cells.find((c) => c.m === state.mode && c.p === panel && c.s === s);
    const side = byId(`text-${pick.dataset.side}`), found = cell?.texts?.[which];
    side.querySelector("h3").textContent = s == null ? data.reference : labelOf(cell ?? { s });
    side.querySelector(".hint").textContent = cell ? aboutText(cell) : "";
    side.querySelector(".text").replaceChildren(found ?? empty(cell ? "This text was not recorded." : "Not run in this mode."));
  }
}
function pickDefaults() {
  picks.forEach((pick, i) => {
    pick.value = data.pairs[state.mode][textPlace()][i] ?? "";
    if (pick.selectedIndex < 0) pick.selectedIndex = 0;  // there is no reference
  });
}
function showTexts() {
  if (untouched) pickDefaults();
  drawTexts();
}
on(picks, "change", () => { untouched = false; drawTexts(); });
on(all("[name='which']"), "change", drawTexts);
on(all("#text-panel"), "change", showTexts);

