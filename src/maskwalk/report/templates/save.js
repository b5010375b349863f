// ---------------------------------------------------------------- figures and tables as files
// A figure is saved as it is drawn now, with its colours; a table as the reader sorted it.
const DRAWN = ["fill", "fill-opacity", "stroke", "stroke-width", "stroke-dasharray", "stroke-linecap", "stroke-linejoin", "opacity", "font-size", "font-weight", "font-family", "font-style", "text-anchor", "paint-order", "visibility"];
function standalone(picture) {
  const copy = picture.cloneNode(true), ground = getComputedStyle(document.documentElement).getPropertyValue("--card");
  const [from, to] = [[picture, ...picture.querySelectorAll("*")], [copy, ...copy.querySelectorAll("*")]];
  from.forEach((node, i) => {
    const style = getComputedStyle(node);
    to[i].setAttribute("style", DRAWN.map((name) => `${name}:${style.getPropertyValue(name)}`).join(";"));
    for (const name of ["class", "tabindex", "role", "aria-label"]) to[i].removeAttribute(name);
  });
  const [, , width, height] = picture.getAttribute("viewBox").split(" ").map(Number);
  copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  copy.setAttribute("width", width);
  copy.setAttribute("height", height);
  const back = rect("", 0, 0, width, height, { style: `fill:${colourOf(ground)}` });
  back.removeAttribute("class");
  copy.prepend(back);
  return { text: new XMLSerializer().serializeToString(copy), width, height };
}
// The colour that a custom property names, as the page shows it.
function colourOf(value) {
  const probe = element("span");
  probe.style.color = value;
  document.body.append(probe);
  const colour = getComputedStyle(probe).color;
  probe.remove();
  return colour;
}
function download(name, blob) {
  const link = Object.assign(document.createElement("a"), { download: name, href: URL.createObjectURL(blob) });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}
const stemOf = (words) => words.toLowerCase().replace(/[^\p{L}\p{N}]+/gu, "-").replace(/^-|-$/g, "").slice(0, 80) || "figure";
function saveSvg(picture, name) { download(`${stemOf(name)}.svg`, new Blob([standalone(picture).text], { type: "image/svg+xml" })); }
function savePng(picture, name) {
  const { text: source, width, height } = standalone(picture), scale = Math.max(2, 1600 / width);
  const image = new Image();
  image.addEventListener("load", () => {
    const canvas = Object.assign(document.createElement("canvas"), { width: width * scale, height: height * scale });
    canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
    canvas.toBlob((blob) => download(`${stemOf(name)}.png`, blob), "image/png");
  });
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(source)}`;
}

// A row is [text, value] of every cell: a number in CSV is the value, with its ± in a column of its own.
function sheetOf(table) {
  const words = (cell) => cell.textContent.replace(/\s+/g, " ").replace(/[▲▼]/g, "").trim();
  const heads = [...table.tHead.rows[0].cells].map(words);
  const rows = [...table.tBodies[0].rows, ...(table.tFoot?.rows || [])];
  return { heads, rows: rows.map((row) => [...row.cells].map((cell) => ({ words: words(cell), value: cell.tagName === "TD" ? cell.dataset.v : undefined, half: cell.querySelector("small:not(.paper)")?.textContent.match(/±\s*([\d.]+)/)?.[1] }))) };
}
const quoted = (words) => (/[",\n]/.test(words) ? `"${words.replaceAll('"', '""')}"` : words);
function csvOf(table) {
  const { heads, rows } = sheetOf(table);
  const measured = heads.map((_, i) => rows.some((row) => row[i]?.half != null));
  const line = (row, of) => row.flatMap((cell, i) => (measured[i] ? of(cell) : [of(cell)[0]])).map(quoted).join(",");
  return `${[line(heads, (head) => [head, `${head} ±`]), ...rows.map((row) => line(row, (cell) => [cell?.value || cell?.words || "", cell?.half || ""]))].join("\n")}\n`;
}
const SPECIAL = { "\\": "\\textbackslash{}", "&": "\\&", "%": "\\%", $: "\\$", "#": "\\#", _: "\\_", "{": "\\{", "}": "\\}", "~": "\\textasciitilde{}", "^": "\\textasciicircum{}", "±": "$\\pm$", "×": "$\\times$", "–": "--", "†": "$\\dagger$", "≤": "$\\le$", "·": "$\\cdot$", "γ": "$\\gamma$" };
const latex = (words) => [...words].map((sign) => SPECIAL[sign] ?? sign).join("");
function latexOf(table) {
  const { heads, rows } = sheetOf(table), line = (cells) => `${cells.map(latex).join(" & ")} \\\\`;
  return [`\\begin{tabular}{l${"r".repeat(Math.max(heads.length - 1, 0))}}`, "\\toprule", line(heads), "\\midrule", ...rows.map((row) => line(row.map((cell) => cell.words))), "\\bottomrule", "\\end{tabular}", ""].join("\n");
}

function saver(label, title, act) {
  const button = element("button", "plain save", label);
  Object.assign(button, { type: "button", title });
  button.addEventListener("click", act);
  return button;
}
function offerFigure(caption, find, name) {
  const put = (...nodes) => (caption.firstElementChild ? caption.firstElementChild.after(...nodes) : caption.append(...nodes));
  put(saver("SVG", "Save this figure as SVG", () => find() && saveSvg(find(), name())), saver("PNG", "Save this figure as PNG", () => find() && savePng(find(), name())));
}
function offerTable(table) {
  const name = () => table.caption?.textContent || document.title, file = (kind, text) => download(`${stemOf(name())}.${kind}`, new Blob([text], { type: "text/plain" }));
  table.after(element("p", "exports", saver("CSV", "Save this table as CSV", () => file("csv", csvOf(table))), saver("LaTeX", "Save this table as LaTeX (booktabs)", () => file("tex", latexOf(table)))));
}
