const tip = byId("tip");
const hideTip = () => { tip.hidden = true; };
function showTip(title, words, x, y) {
  const head = document.createElement("b");
  head.textContent = title;
  tip.replaceChildren(head, words);
  tip.hidden = false;
  const { width, height } = tip.getBoundingClientRect();
  const left = x + 14 + width > innerWidth - 8 ? x - 14 - width : x + 14;
  const top = y + 14 + height > innerHeight - 8 ? y - 14 - height : y + 14;
  tip.style.left = `${Math.max(left, 8) + scrollX}px`;
  tip.style.top = `${Math.max(top, 8) + scrollY}px`;
}

let pointed = () => {};  // what else happens to the sampler that is pointed at
// One sampler stands out in all the figures; null: none does.
function light(sampler) {
  pointed(sampler);
  for (const plot of all(".plot")) plot.classList.toggle("lit", sampler != null);
  for (const node of all("[data-s]")) node.classList.toggle("on", node.dataset.s.split(" ").includes(String(sampler)));
}

// A mark that speaks (but for its options, which are to be copied) when it has the focus.
function speak(node, mark, { s, title, words }) {
  node.setAttribute("role", "img");
  const spoken = words.split("\n").filter((line) => !line.startsWith(AS_OPTIONS));
  node.setAttribute("aria-label", `${title}: ${spoken.join(", ")}`);
  node.addEventListener("focus", () => {
    const box = mark.getBoundingClientRect();
    showTip(title, words, box.right, box.bottom);
    light(s);
  });
  node.addEventListener("blur", () => { hideTip(); light(null); });
}

// The mark nearest to the pointer speaks: points are {px, py, s, title, number, words}. It
// names the others at its place.
function nearest(root, width, points) {
  root.addEventListener("pointermove", (event) => {
    const box = root.getBoundingClientRect(), scale = width / box.width;
    const [x, y] = [(event.clientX - box.left) * scale, (event.clientY - box.top) * scale];
    const { p } = points.map((q) => ({ p: q, d: Math.hypot(q.px - x, q.py - y) })).reduce((a, b) => (b.d < a.d ? b : a), { d: 22 });
    light(p ? p.s : null);
    const others = p ? points.filter((q) => q !== p && Math.hypot(q.px - p.px, q.py - p.py) < 5) : [];
    if (p) showTip(p.title, p.words + alsoHere(others.map((q) => [q.title, q.number])), event.clientX, event.clientY);
    else hideTip();
  });
  root.addEventListener("pointerleave", () => { hideTip(); light(null); });
}

// Arrow keys walk a list of which only one element is a tab stop.
function rove(nodes) {
  nodes.forEach((node, i) => {
    node.setAttribute("tabindex", i ? -1 : 0);
    node.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
      if (!step) return;
      event.preventDefault();
      const next = nodes[(i + step + nodes.length) % nodes.length];
      nodes.forEach((other) => other.setAttribute("tabindex", other === next ? 0 : -1));
      next.focus();
    });
  });
}
