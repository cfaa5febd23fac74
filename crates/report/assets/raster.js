// Pixels that are filled one by one: a canvas's own rectangles take too long by the ten thousand.

class Raster {
  constructor(canvas) {
    this.canvas = canvas;
    this.context = canvas.getContext("2d", { alpha: false });
    this.width = 0;
    this.height = 0;
    this.clip(0, 0);
  }

  // Bars end at these columns.
  clip(left, right) {
    this.left = Math.round(left);
    this.right = Math.round(right);
  }

  resize(width, height) {
    this.clip(0, width);
    if (this.width === width && this.height === height) return;
    this.width = this.canvas.width = width;
    this.height = this.canvas.height = height;
    this.image = this.context.createImageData(width, height);
    this.pixels = new Uint32Array(this.image.data.buffer);
  }

  clear(colour) {
    this.pixels.fill(colour);
  }

  // Fills a rectangle that is a pixel wide and high at least.
  bar(left, right, top, bottom, colour) {
    const from = Math.max(this.left, left | 0);
    const to = Math.min(this.right, Math.max((left | 0) + 1, right | 0));
    if (from >= to) return;
    const { pixels, width } = this;
    const last = Math.min(this.height, bottom);
    if (to - from === 1) {
      for (let at = top * width + from; at < last * width; at += width) pixels[at] = colour;
      return;
    }
    for (let y = top; y < last; y++) pixels.fill(colour, y * width + from, y * width + to);
  }

  // The same in two colours, of which the second one makes slanted lines.
  hatched(left, right, top, bottom, [colour, line]) {
    this.bar(left, right, top, bottom, colour);
    if (line === colour) return;
    const from = Math.max(this.left, left | 0);
    const to = Math.min(this.right, Math.max((left | 0) + 1, right | 0));
    const last = Math.min(this.height, bottom);
    for (let y = top; y < last; y++) {
      const row = y * this.width;
      // Lines go on from one bar to the next, so that narrow ones are hatched together.
      for (let x = from - ((from + y) & 7); x < to; x += 8) {
        if (x >= from) this.pixels[row + x] = line;
        if (x + 1 >= from && x + 1 < to) this.pixels[row + x + 1] = line;
      }
    }
  }

  show() {
    this.context.putImageData(this.image, 0, 0);
  }
}
