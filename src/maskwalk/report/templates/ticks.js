// ---------------------------------------------------------------- figures: geometry
// 1, 2, 3, 4, 6, 8, 12, 16, 24, …
const stops = Array.from({ length: 20 }, (_, i) => [2 ** i, 1.5 * 2 ** i]).flat().filter(Number.isInteger);

function niceTicks(low, high, count) {
  const raw = (high - low) / count;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 2.5, 5, 10].map((m) => m * power).find((s) => s >= raw * (1 - 1e-9));
  const ticks = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + 1e-9 * step; i += 1) ticks.push(+(i * step).toPrecision(10));
  return ticks;
}

