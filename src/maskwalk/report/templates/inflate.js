// ---------------------------------------------------------------- packed data (RFC 1951)
// A large page carries its JSON deflated and in base64; this reads it without waiting for anything.
const REACH = [[3, 0], [4, 0], [5, 0], [6, 0], [7, 0], [8, 0], [9, 0], [10, 0], [11, 1], [13, 1], [15, 1], [17, 1], [19, 2], [23, 2], [27, 2], [31, 2], [35, 3], [43, 3], [51, 3], [59, 3], [67, 4], [83, 4], [99, 4], [115, 4], [131, 5], [163, 5], [195, 5], [227, 5], [258, 0]];
const BACK = Array.from({ length: 30 }, (_, i) => (i < 2 ? [i + 1, 0] : [(2 + (i % 2)) * 2 ** ((i >> 1) - 1) + 1, (i >> 1) - 1]));
const CODES = [16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15];

// Canonical Huffman codes: how many of each length, and the symbols in order.
function huffman(lengths) {
  const counts = new Uint16Array(16), starts = new Uint16Array(17), symbols = new Uint16Array(lengths.length);
  for (const length of lengths) counts[length] += 1;
  counts[0] = 0;
  for (let i = 1; i < 16; i += 1) starts[i + 1] = starts[i] + counts[i];
  lengths.forEach((length, symbol) => { if (length) symbols[starts[length]++] = symbol; });
  return { counts, symbols };
}

function inflate(bytes) {
  let at = 0, held = 0, bits = 0, out = new Uint8Array(bytes.length * 6), size = 0;
  const take = (n) => {
    while (bits < n) { held |= bytes[at++] << bits; bits += 8; }
    const value = held & ((1 << n) - 1);
    held >>>= n;
    bits -= n;
    return value;
  };
  const symbol = ({ counts, symbols }) => {
    let code = 0, first = 0, index = 0;
    for (let length = 1; length < 16; length += 1) {
      code |= take(1);
      const count = counts[length];
      if (code - first < count) return symbols[index + code - first];
      index += count;
      first = (first + count) << 1;
      code <<= 1;
    }
    throw new Error("The page's data are damaged.");
  };
  const room = (n) => {
    if (size + n <= out.length) return;
    const more = new Uint8Array(Math.max(2 * out.length, size + n));
    more.set(out);
    out = more;
  };
  const dynamic = () => {
    const [literals, distances, codes] = [take(5) + 257, take(5) + 1, take(4) + 4];
    const lengths = new Uint8Array(19), all = [];
    for (let i = 0; i < codes; i += 1) lengths[CODES[i]] = take(3);
    const table = huffman([...lengths]);
    while (all.length < literals + distances) {
      const s = symbol(table);
      if (s < 16) all.push(s);
      else {
        const [value, times] = s === 16 ? [all.at(-1), 3 + take(2)] : s === 17 ? [0, 3 + take(3)] : [0, 11 + take(7)];
        for (let i = 0; i < times; i += 1) all.push(value);
      }
    }
    return [huffman(all.slice(0, literals)), huffman(all.slice(literals))];
  };
  const fixed = () => [huffman(Array.from({ length: 288 }, (_, i) => (i < 144 ? 8 : i < 256 ? 9 : i < 280 ? 7 : 8))), huffman(Array(30).fill(5))];
  for (let last = 0; !last;) {
    last = take(1);
    const kind = take(2);
    if (kind === 0) {
      held = bits = 0;
      const length = bytes[at] | (bytes[at + 1] << 8);
      room(length);
      out.set(bytes.subarray(at + 4, at + 4 + length), size);
      size += length;
      at += 4 + length;
      continue;
    }
    const [literals, distances] = kind === 1 ? fixed() : dynamic();
    for (let s = symbol(literals); s !== 256; s = symbol(literals)) {
      if (s < 256) { room(1); out[size++] = s; continue; }
      const [length, more] = REACH[s - 257], count = length + take(more);
      const [distance, extra] = BACK[symbol(distances)], from = size - distance - take(extra);
      room(count);
      for (let i = 0; i < count; i += 1) out[size++] = out[from + i];
    }
  }
  return out.subarray(0, size);
}

function unpacked(node) {
  if (node.dataset.packed == null) return node.textContent;
  return new TextDecoder().decode(inflate(Uint8Array.from(atob(node.textContent.trim()), (c) => c.charCodeAt(0))));
}
