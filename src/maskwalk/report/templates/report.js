// ---------------------------------------------------------------- switches, legend, tables
function draw(figure) {
  if (figure.dataset.series != null) drawSeries(figure);
  else if (figure.dataset.losses != null) drawLosses(figure);
  else drawPlot(figure);
}
const drawPlots = () => all(".panel").forEach((figure) => { if (!figure.closest(".fold:not([open])")) draw(figure); });

function setMode(mode) {
  state.mode = mode;
  paintAll();
  for (const node of all("[data-mode]")) node.hidden = +node.dataset.mode !== mode;
  drawPlots();
  if (byId("watch")) drawWatch();
  if (byId("traces")) drawTraces();
  if (byId("texts")) showTexts();
  remember();
}

const membersOf = (family) => data.samplers.flatMap((s, i) => (s.family === family ? [i] : []));
function show(samplers, visible) {
  for (const s of samplers) visible ? state.hidden.delete(s) : state.hidden.add(s);
  for (const chip of all("[data-sampler]")) chip.setAttribute("aria-pressed", !state.hidden.has(+chip.dataset.sampler));
  for (const name of all("[data-family]")) name.setAttribute("aria-pressed", membersOf(+name.dataset.family).some((s) => !state.hidden.has(s)));
  drawPlots();
  remember();
}

// The first click puts names and cost in rising order, numbers in falling; the next turns it round.
function sortBy(header) {
  const column = header.cellIndex, body = header.closest("table").tBodies[0];
  const before = header.getAttribute("aria-sort");
  const rising = before ? before === "descending" : column < 2;
  for (const other of header.parentNode.cells) other.removeAttribute("aria-sort");
  header.setAttribute("aria-sort", rising ? "ascending" : "descending");
  const missing = (row) => row.cells[column].dataset.v === "";
  const key = (row) => +row.cells[column].dataset.v * (rising ? 1 : -1);
  body.append(...[...body.rows].sort((a, b) => missing(a) - missing(b) || key(a) - key(b)));
}

for (const mark of all("svg.mark")) {
  const family = +mark.closest("[class*='fam']").className.match(/\bfam(\d+)\b/)[1];
  mark.setAttribute("viewBox", "-7 -7 14 14");
  mark.append(marker(family, 5));
}
on(all("#modes input"), "change", (input) => setMode(+input.value));
on(all("#scale input"), "change", (input) => { state.log = input.value === "log"; state.zoom.clear(); drawPlots(); remember(); });
on(all("#theme input"), "change", (input) => { document.documentElement.dataset.theme = input.value; remember(); });
on(all("[data-sampler]"), "click", (chip) => {
  const s = +chip.dataset.sampler;
  if (!pick(data.samplers[s].family) || state.hidden.has(s)) show([s], state.hidden.has(s));
});
on(all("[data-sampler]"), "pointerenter", (chip) => light(+chip.dataset.sampler));
on(all("[data-sampler]"), "pointerleave", () => light(null));
on(all("[data-family]"), "click", (name) => {
  const hidden = name.getAttribute("aria-pressed") === "false";
  if (!pick(+name.dataset.family) || hidden) show(membersOf(+name.dataset.family), hidden);
});
on(all("[data-family]"), "pointerenter", (name) => pointAt(+name.dataset.family));
on(all("[data-family]"), "pointerleave", () => pointAt(null));
const everyone = data.samplers.map((_, i) => i);
on([byId("all")], "click", () => show(everyone, true));
if (data.crowd) {
  on([byId("none")], "click", () => show(everyone, false));
  on([byId("fronts")], "click", () => {
    const best = frontSamplers();
    everyone.forEach((s) => (best.has(s) ? state.hidden.delete(s) : state.hidden.add(s)));
    show([], true);
  });
  on([byId("settings")], "click", (button) => button.setAttribute("aria-pressed", byId("legend").classList.toggle("brief") === false));
}
on(all(".enlarge"), "click", (button) => {
  const wide = button.closest(".panel").classList.toggle("wide");
  button.setAttribute("aria-pressed", wide);
  button.textContent = wide ? "Shrink" : "Enlarge";
  drawPlots();
});
on(all(".reset"), "click", (button) => resetZoom(button.closest(".panel")));
on(all(".sortable thead button"), "click", (button) => sortBy(button.closest("th")));
if (byId("traces")) {
  on([byId("trace-panel")], "change", (choice) => { state.panel = +choice.value; drawTraces(); });
  on([byId("trace-sampler")], "change", (choice) => chooseSampler(choice.value));
}
document.addEventListener("keydown", (event) => { if (event.key === "Escape") hideTip(); });
addEventListener("resize", () => { hideTip(); requestAnimationFrame(drawPlots); });
matchMedia("print").addEventListener("change", (event) => {
  state.print = event.matches;
  if (state.print) for (const fold of all(".fold")) fold.open = true;
  if (state.print) byId("legend").open = true;  // else paper has no legend
  drawPlots();
});
byId("legend").open = innerWidth > 800;
// Once the page is scrolled the legend is one line, which goes on to the right.
addEventListener("scroll", () => {
  if (scrollY > 500) byId("bar").classList.add("small");
  else if (scrollY < 60) byId("bar").classList.remove("small");
  else return;
  fade(byId("legend").querySelector(".families"));
}, { passive: true });
for (const fold of all(".fold")) fold.addEventListener("toggle", () => fold.querySelectorAll(".panel").forEach(draw));
on(all("nav a"), "click", (link) => byId(link.hash.slice(1))?.querySelector(".fold")?.setAttribute("open", ""));
state.sampler = Math.max(data.samplers.findIndex((s) => s.line.startsWith("bisection")), 0);
watch.first = watch.panel = castsOf(0)[0]?.p ?? 0;
if (byId("watch")) on([byId("watch-panel")], "change", (choice) => { watch.panel = +choice.value; drawWatch(); });
follow();
place.ready = true;
for (const figure of all(".panel")) offerFigure(figure.querySelector("figcaption"), () => figure.querySelector(".plot svg"), () => figure.querySelector("h4").textContent);
all("main table").forEach(offerTable);
watchScroll();
