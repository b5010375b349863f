// The value to compare by: what is better than exact sequences get is no better than they.
function settledValue(metric, e) {
  return e.floor == null ? e.v : metric.better * Math.min(metric.better * e.v, metric.better * e.floor);
}

// Who may lead: exact and factorised results; shaped ones where there are no others.
function lawful(cells) {
  const rest = cells.filter((c) => !c.law);
  return rest.length ? rest : [...cells];
}
// Shaped results that are better, beyond the noise, than every lawful one of at most their cost.
function aheadByShaping(cells, metric) {
  const of = (cell) => cell.e[metric.key], rest = cells.filter((c) => !c.law);
  const gain = (a, b) => metric.better * (settledValue(metric, of(a)) - settledValue(metric, of(b)));
  const leads = (a, b) => costOf(b) > costOf(a) || gain(a, b) > Math.hypot(of(a).half || 0, of(b).half || 0);
  return rest.length && metric.better ? cells.filter((c) => c.law && rest.every((other) => leads(c, other))) : [];
}

// The steps of the Pareto front that leave the interval of the step before (stats.clear_steps); equal
// ones share a place. Halves of intervals add as errors do: in squares.
function paretoFront(cells, metric) {
  const of = (cell) => cell.e[metric.key], value = (cell) => settledValue(metric, of(cell)), sign = metric.better;
  const order = lawful(cells).sort((a, b) => costOf(a) - costOf(b) || sign * (value(b) - value(a)));
  const front = [];
  for (const cell of order) {
    const last = front.at(-1);
    if (last && costOf(last.cell) === costOf(cell) && value(last.cell) === value(cell)) last.ties += 1;
    else if (!last || sign * (value(cell) - value(last.cell)) > Math.hypot(of(cell).half || 0, of(last.cell).half || 0)) front.push({ cell, ties: 0 });
  }
  return front;
}

// Points stand where their numbers are; those that share a place get rings of different sizes around
// the first of them. `mates` of a point are the points at its place, itself among them.
function ringUp(points, gap, most) {
  const near = (p, q) => Math.hypot(p.x - q.x, p.y - q.y) < gap;
  const placed = [];
  for (const point of [...points].sort((a, b) => b.front - a.front)) {
    const taken = new Set(placed.filter((q) => near(point, q)).map((q) => q.ring));
    point.ring = 0;
    while (point.ring < most && taken.has(point.ring)) point.ring += 1;
    point.mates = points.filter((q) => near(point, q));
    placed.push(point);
  }
}

// Labels try the empty side of the front first (`sign`: above or below) and keep off what is drawn.
function placeLabels(wanted, points, drawn, frame, sign) {
  const marks = data.crowd ? points.filter((p) => p.front) : points;  // pale ones may be written over
  const boxes = [...marks.map((p) => [p.x - 6, p.y - 6, p.x + 6, p.y + 6]), ...drawn];
  const shared = (a, b, i) => Math.max(0, Math.min(a[i + 2], b[i + 2]) - Math.max(a[i], b[i]));
  const ways = [[-1, -1], [-1, 0], [0, -1], [1, 0], [1, -1], [0, 1], [1, 1], [-1, 1]];
  const places = [8, 18, 30, 44].flatMap((far) => ways.map(([dx, dy]) => [far, dx, dy * sign]));
  const out = [];
  for (const { point, words, must } of wanted) {
    const width = textWidth(words), height = 13;
    let best = null;
    for (const [far, dx, dy] of places) {
      const x = point.x + dx * far * (dy ? 0.7 : 1) - (dx < 0 ? width : dx ? 0 : width / 2);
      const y = point.y + dy * far - height / 2;
      const box = [x, y, x + width, y + height];
      const outside = Math.max(0, frame[0] - x, box[2] - frame[2]) + Math.max(0, frame[1] - y, box[3] - frame[3]);
      const covers = boxes.reduce((sum, other) => sum + shared(box, other, 0) * shared(box, other, 1), outside * 40);
      const cost = covers + far - places[0][0];  // rather touch something than stand far away
      if (!best || cost < best.cost) best = { cost, covers, box, far, point, words, outside };
      if (!cost) break;
    }
    const piles = out.some((other) => shared(best.box, other.box, 0) * shared(best.box, other.box, 1) > 0);
    if ((best.covers && !must) || piles || best.outside > 0) continue;
    boxes.push(best.box);
    out.push(best);
  }
  return out;
}

