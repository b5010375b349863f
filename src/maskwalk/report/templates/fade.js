// A table or a legend that goes on to the right fades there.
function fade(node) {
  const more = node.scrollWidth - node.clientWidth - node.scrollLeft > 8;
  node.classList.toggle("goes-on", more);
}
function watchScroll() {
  for (const node of document.querySelectorAll(".scroll, .families")) {
    node.addEventListener("scroll", () => fade(node), { passive: true });
    new ResizeObserver(() => fade(node)).observe(node);
  }
}
