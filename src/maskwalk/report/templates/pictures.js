// ---------------------------------------------------------------- traces of worlds that draw themselves
// A picture is [title, parts]: pieces of its text, old and new by turns, old ones first (frames.py).
const SIGNS = { "·": "blank", "✗": "broken" };
function painted(part, isNew) {
  const pieces = part.split(/([·✗])/).filter(Boolean).map((p) => (SIGNS[p] ? element("span", SIGNS[p], p) : p));
  return isNew ? [element("b", "new", ...pieces)] : pieces;
}

function drawPictures(cell) {
  const { pictures, valid } = cell.trace, { last } = roundsOf(cell.trace);
  const shown = pictures.filter(([title]) => title !== "given").length;
  const few = shown < last ? ` (${shown} of them are shown)` : "";
  const possible = !valid ? "" : `; the sequence is ${valid.includes("0") ? "impossible" : "possible"}`;
  const strip = pictures.every(([, parts]) => !parts.join("").includes("\n"));
  const figures = pictures.map(([title, parts]) =>
    element("figure", "", element("figcaption", "", title), element("pre", "", ...parts.flatMap((p, i) => painted(p, i % 2 === 1)))));
  byId("trace").replaceChildren(
    element("p", "heading", `${labelOf(cell)}: ${last} ${last === 1 ? "round" : "rounds"}${few}${possible}`),
    element("div", strip ? "pictures lines" : "pictures", ...figures));
}
