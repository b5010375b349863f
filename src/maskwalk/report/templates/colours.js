// ---------------------------------------------------------------- colours where there are many families
// More families than colours: those on a front, evaluated or chosen have theirs, and the one that is
// pointed at; the rest are grey. A family's colour is one custom property, so nothing is drawn anew.
const MANY = 15;
const hue = { many: data.families.length > MANY, chosen: new Set(), front: new Set(), pointed: null };
const coloured = (family) => !hue.many || hue.chosen.has(family) || hue.front.has(family);
function paint(family) {
  const grey = !coloured(family) && family !== hue.pointed, { style } = document.documentElement;
  if (grey) style.setProperty(`--fam${family}`, "var(--grey)");
  else style.removeProperty(`--fam${family}`);
  for (const node of all(`.family.fam${family}`)) node.classList.toggle("grey", grey);
}
// The samplers on a front of the quality, in any panel of the mode.
function frontSamplers() {
  const metric = metricOf[data.quality];
  if (!metric) return new Set();
  const here = data.panels.map((_, p) => inPanel(p).filter((c) => c.m === state.mode && drawable(c, metric.key)));
  return new Set(here.flatMap((cells) => (cells.some((c) => c.e[metric.key].bound) ? [] : paretoFront(cells, metric).map(({ cell }) => cell.s))));
}
function paintAll() {
  if (!hue.many) return;
  hue.front = new Set([...frontSamplers()].map((s) => data.samplers[s].family));
  for (const { own, family } of data.samplers) if (own) hue.front.add(family);
  data.families.forEach((_, family) => paint(family));
}
function pointAt(family) {
  if (!hue.many || family === hue.pointed) return;
  const before = hue.pointed;
  hue.pointed = family;
  for (const one of [before, family]) if (one != null) paint(one);
}
pointed = (sampler) => pointAt(sampler == null ? null : data.samplers[sampler].family);
// The first click on a grey family colours it; whether that was all.
function pick(family) {
  const grey = !coloured(family);
  hue.chosen.add(family);
  paint(family);
  return grey;
}
