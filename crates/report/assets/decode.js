// Numbers as the page carries them: compressed columns, in groups of seven bits.

async function inflate(letters) {
  const packed = Uint8Array.fromBase64
    ? Uint8Array.fromBase64(letters)
    : Uint8Array.from(atob(letters), (letter) => letter.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

// Fills `out` with the numbers of a column. Only lists of one type are filled one by one, because
// engines are fast with that.
function numbers(bytes, out) {
  if (!(out instanceof Float64Array)) {
    out.set(numbers(bytes, new Float64Array(out.length)));
    return out;
  }
  let at = 0;
  for (let i = 0; i < out.length; i++) {
    let byte = bytes[at++];
    let value = byte & 127;
    // Products, because shifts end at 32 bits.
    for (let unit = 128; byte > 127; unit *= 128) {
      byte = bytes[at++];
      value += (byte & 127) * unit;
    }
    out[i] = value;
  }
  return out;
}

// A number whose sign is in its lowest bit.
function signed(value) {
  return value % 2 === 0 ? value / 2 : -(value + 1) / 2;
}

// The same for numbers that are differences.
function deltas(bytes, out) {
  numbers(bytes, out);
  let last = 0;
  for (let i = 0; i < out.length; i++) {
    last += signed(out[i]);
    out[i] = last;
  }
  return out;
}

// The first place in a sorted list whose value is at least this one.
function lowerBound(sorted, value) {
  let low = 0;
  let high = sorted.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (sorted[middle] < value) low = middle + 1;
    else high = middle;
  }
  return low;
}
