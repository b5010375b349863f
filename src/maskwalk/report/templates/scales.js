const panelCells = data.panels.map(() => []);
for (const cell of data.cells) panelCells[cell.p].push(cell);
const inPanel = (panel) => panelCells[panel];
const costOf = (cell) => cell.e[data.cost].v;
const drawable = (cell, key) => cell.e[key] && cell.e[data.cost];
const ends = ({ v, half }) => [v - (half || 0), v + (half || 0)];

// What the y axis spans: all modes, so that it stays put. A share that has a direction has its limits;
// where lower is better, and 0 the least, the axis begins there.
function valueRange(panel, metric, cells) {
  if (metric.share && metric.better) return [0, 1];
  const marks = data.references.filter((c) => c.p === panel && c.e[metric.key]);
  const values = [...cells, ...marks].flatMap(({ e: { [metric.key]: e } }) => [...ends(e), ...(e.floor == null ? [] : [e.floor])]);
  const grounded = metric.better && metric.limits[0] === 0;
  const [least, most] = [grounded ? 0 : Math.min(...values), Math.max(...values)];
  const pad = (most - least) * 0.04 || 0.1;
  return [grounded ? 0 : least - pad, most + pad];
}

const LEAST_COST = 1 / 16;  // on a logarithmic axis; a mean may be below one call, and nothing has no place

// The maps from (cost, value) to pixels and back.
function scales(panel, metric, frame) {
  const cells = inPanel(panel).filter((c) => drawable(c, metric.key));
  const along = (v) => (state.log ? Math.log2(Math.max(v, LEAST_COST)) : v);
  const costs = cells.map((c) => along(costOf(c)));
  const [low, high] = [Math.min(...costs), Math.max(...costs)];
  const zoom = state.zoom.get(`${metric.key}${panel}`);
  const [[a, b], [c, d]] = zoom || [high - low < 1e-6 ? [low - 1, high + 1] : [low, high], valueRange(panel, metric, cells)];
  const room = zoom ? 0 : 1;  // for labels
  const [left, right] = [frame[0] + (data.single ? 34 : 64) * room, frame[2] - 32 * room];
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
