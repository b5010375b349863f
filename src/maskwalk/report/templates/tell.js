// ---------------------------------------------------------------- numbers in words
const INTERVAL = "± half of a 95 % interval";
const metricOf = Object.fromEntries(data.metrics.map((m) => [m.key, m]));
const numberOf = (metric, v) => (metric.plain ? brief(v) : fixed(v, metric.digits));
const counted = (n) => `n = ${n.toLocaleString("en")}`;
function estimated(metric, { v, half, bound }) {
  const certain = half != null && (metric.plain ? !+fixed(half, metric.digits) : half < 1e-12);
  const error = certain ? "" : ` ± ${half == null ? "–" : fixed(Math.max(half, 10 ** -metric.digits), metric.digits)}`;
  return `${bound ? "≤ " : ""}${numberOf(metric, v)}${error}`;
}

// The n of most of a cell's numbers; the others say their own.
function usualCount(estimates) {
  const counts = new Map();
  for (const { n } of estimates) if (n != null) counts.set(n, (counts.get(n) || 0) + 1);
  return [...counts].reduce((a, b) => (b[1] > a[1] ? b : a), [null, 0])[0];
}

const AS_OPTIONS = "as options: ";

// The whole decoding of a cell as options, to be pasted behind a command.
const inShell = (spec) => (spec.includes("'") ? `"${spec}"` : `'${spec}'`);
const asOptions = ({ s, d }) => (d == null ? null : `--sampler ${inShell(data.samplers[s].spec)} ${data.draws[d]}`);

// Every number of a cell, one line per metric.
function tell(cell) {
  const metrics = data.metrics.filter((m) => cell.e[m.key]);
  const usual = usualCount(metrics.map((m) => cell.e[m.key]));
  const lines = metrics.map((m) => {
    const e = cell.e[m.key], more = [];
    if (e.max != null) more.push(`${brief(e.max)} at most`);
    if (e.floor != null) more.push(`floor ${numberOf(m, e.floor)}`);
    if (e.excess != null) more.push(`excess ${numberOf(m, e.excess)}`);
    const n = e.n == null || e.n === usual ? "" : ` (${counted(e.n)})`;
    return `${[`${m.title} ${estimated(m, e)}`, ...more].join(", ")}${n}`;
  });
  if (cell.paper) {
    const { v, sd, away: z } = cell.paper;
    lines.push(`paper ${fixed(v)}${sd == null ? "" : `, sd ${fixed(sd)}`}${z == null ? "" : `; ours is ${away(z)}`}`);
  }
  if (cell.law) lines.push(`${MARK} shaped: ${cell.law}`);
  lines.push(`${usual == null ? "" : `${counted(usual)}; `}${INTERVAL}`);
  const options = asOptions(cell);
  if (options) lines.push(AS_OPTIONS + options);
  return lines.join("\n");
}

// What else is at a place: [name, number] of each, a line each.
const MOST_TOLD = 9;
function alsoHere(others) {
  const lines = others.slice(0, MOST_TOLD).map(([name, number]) => `${name}: ${number}`);
  const rest = others.length - lines.length;
  return lines.length ? `\nAlso here:\n${lines.join("\n")}${rest > 0 ? `\nand ${rest} more` : ""}` : "";
}
