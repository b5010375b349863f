// The first click puts names and places in rising order, numbers in falling; the next turns it round.
const value = (cell) => (cell.dataset.v == null ? cell.textContent.trim() : cell.dataset.v === "" ? null : +cell.dataset.v);
function sortBy(header) {
  const column = header.cellIndex, body = header.closest("table").tBodies[0], before = header.getAttribute("aria-sort");
  const words = body.rows[0] && typeof value(body.rows[0].cells[column]) === "string";
  const rising = before ? before === "descending" : words || column === 0;
  for (const other of header.parentNode.cells) other.removeAttribute("aria-sort");
  header.setAttribute("aria-sort", rising ? "ascending" : "descending");
  const rows = [...body.rows].map((row) => ({ row, v: value(row.cells[column]) }));
  const compare = (a, b) => (words ? a.v.localeCompare(b.v) : a.v - b.v) * (rising ? 1 : -1);
  rows.sort((a, b) => (a.v == null) - (b.v == null) || (a.v == null ? 0 : compare(a, b)));
  body.append(...rows.map(({ row }) => row));
}
for (const button of document.querySelectorAll(".board thead button")) button.addEventListener("click", () => sortBy(button.closest("th")));
watchScroll();
