// Mouse and touch: the nearest point speaks, and a click copies its options; a drag zooms; a double
// click resets.
function listen(root, figure, points, { frame, back, width }) {
  const key = figure.dataset.metric + figure.dataset.panel;
  let start = null, brush = null;
  const at = (event) => {
    const box = root.getBoundingClientRect(), scale = width / box.width;
    const [px, py] = [(event.clientX - box.left) * scale, (event.clientY - box.top) * scale];
    return [clamp(px, frame[0], frame[2]), clamp(py, frame[1] - 8, frame[3])];
  };
  const nearby = (px, py) => points.map((p) => ({ p, d: Math.hypot(p.x - px, p.y - py) })).reduce((a, b) => (b.d < a.d ? b : a), { d: 22 }).p;
  const stop = () => { brush?.remove(); start = brush = null; };
  root.addEventListener("pointerdown", (event) => { if (event.pointerType === "mouse" && !event.button) start = at(event); });
  root.addEventListener("pointermove", (event) => {
    const [px, py] = at(event);
    if (start && Math.hypot(px - start[0], py - start[1]) > 5) {
      hideTip();
      brush ??= root.appendChild(rect("brush", 0, 0, 0, 0));
      const area = [Math.min(px, start[0]), Math.min(py, start[1]), Math.abs(px - start[0]), Math.abs(py - start[1])];
      ["x", "y", "width", "height"].forEach((name, i) => brush.setAttribute(name, area[i]));
      return;
    }
    const p = nearby(px, py);
    light(p ? p.cell.s : null);
    if (p) showTip(labelOf(p.cell), tell(p.cell) + matesOf(p, figure.dataset.metric), event.clientX, event.clientY);
    else hideTip();
  });
  root.addEventListener("click", (event) => {
    const p = nearby(...at(event)), options = p && asOptions(p.cell);
    if (options && navigator.clipboard) navigator.clipboard.writeText(options).then(() => showTip(labelOf(p.cell), `copied: ${options}`, event.clientX, event.clientY), () => {});
  });
  root.addEventListener("pointerup", (event) => {
    const from = start, zooms = brush;
    stop();
    const [px, py] = at(event);
    if (!zooms || Math.abs(px - from[0]) < 12 || Math.abs(py - from[1]) < 12) return;
    const [[ax, ay], [bx, by]] = [back(...from), back(px, py)];
    state.zoom.set(key, [[Math.min(ax, bx), Math.max(ax, bx)], [Math.min(ay, by), Math.max(ay, by)]]);
    drawPlot(figure);
  });
  root.addEventListener("pointerleave", () => { stop(); hideTip(); light(null); });
  root.addEventListener("dblclick", () => resetZoom(figure));
}
function resetZoom(figure) { state.zoom.delete(figure.dataset.metric + figure.dataset.panel); drawPlot(figure); }
function matesOf(point, key) {
  const others = point.mates.filter((q) => q !== point).map(({ cell }) => [labelOf(cell), `${estimated(metricOf[key], cell.e[key])} at ${brief(costOf(cell))}`]);
  return alsoHere(others);
}
