// ---------------------------------------------------------------- tooltip, highlight, arrow keys
function tell(cell) {
  const lines = [];
  if (cell.coherence) lines.push(`coherence ${withError(cell.coherence)}`);
  const most = cell.calls.max == null ? "" : `, ${brief(cell.calls.max)} at most`;
  lines.push(`calls ${brief(cell.calls.v)} on average${most}`);
  if (cell.tv1) {
    const more = ["floor", "excess"].filter((key) => cell.tv1[key] != null).map((key) => `, ${key} ${fixed(cell.tv1[key])}`);
    lines.push(`transition TV ${withError(cell.tv1)}${more.join("")}`);
  }
  if (cell.transition_validity) lines.push(`valid steps ${withError(cell.transition_validity)}`);
  if (cell.first_invalid) lines.push(`first invalid position ${brief(cell.first_invalid.v)} on average`);
  if (cell.paper) lines.push(`paper ${fixed(cell.paper.v)}${cell.paper.sd == null ? "" : `, sd ${fixed(cell.paper.sd)}`}${cell.paper.away == null ? "" : `; ours is ${away(cell.paper.away)}`}`);
  const n = (cell.coherence || cell.tv1).n;
  if (n != null) lines.push(`n = ${n.toLocaleString("en")}`);
  return lines.join("\n");
}

