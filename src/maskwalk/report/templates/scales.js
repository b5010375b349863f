const panelCells = data.panels.map(() => []);
for (const cell of data.cells) panelCells[cell.p].push(cell);
const inPanel = (panel) => panelCells[panel];

// The maps from (calls, value) to pixels and back. The axes span all modes, so that they stay put.
function scales(panel, metric, frame) {
  const cells = inPanel(panel).filter((c) => c[metric] && c.calls);
  const along = (v) => (state.log ? Math.log2(Math.max(v, 1)) : v);
  const calls = cells.map((c) => along(c.calls.v));
  const [low, high] = [Math.min(...calls), Math.max(...calls)];
  const values = cells.map(({ [metric]: e }) => Math.max(e.v + (e.se || 0), e.floor || 0));
  const top = metric === "coherence" ? 1 : Math.max(...values) * 1.05 || 1;
  const zoom = state.zoom.get(`${metric}${panel}`);
  const [[a, b], [c, d]] = zoom || [high - low < 1e-6 ? [low - 1, high + 1] : [low, high], [0, top]];
  const room = zoom ? 0 : 1;  // for labels on the left, and for points set side by side
  const [left, right] = [frame[0] + 64 * room, frame[2] - 30 * room];
  const [up, down] = [frame[1] + 7 * room, frame[3] - 7 * room];
  const x = (v) => left + ((along(v) - a) / (b - a)) * (right - left);
  const y = (v) => down - ((v - c) / (d - c)) * (down - up);
  const back = (px, py) => [a + ((px - left) / (right - left)) * (b - a), c + ((down - py) / (down - up)) * (d - c)];
  const inner = stops.filter((s) => state.log && x(s) >= frame[0] && x(s) <= frame[2]);
  const wanted = inner.length > 1 ? inner : niceTicks(state.log ? 2 ** a : a, state.log ? 2 ** b : b, 6);
  const xTicks = [];
  for (const t of wanted) if (!xTicks.length || x(t) - x(xTicks.at(-1)) > 26) xTicks.push(t);
  return { x, y, back, xTicks, yTicks: niceTicks(c, d, 4) };
}

