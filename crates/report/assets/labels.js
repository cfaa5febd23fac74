// What is written and drawn over the bars: the axis, reasons, arrows, and what is chosen.

const FONT = "system-ui, sans-serif";
// More arrows than this are a blot.
const MOST_ARROWS = 150;

// Times for marks: about one for each hundred pixels, at round distances.
function marks(from, to, width) {
  const rough = ((to - from) / Math.max(1, width)) * 110;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = Math.max(1, [1, 2, 5, 10].map((it) => it * power).find((it) => it >= rough));
  const found = [];
  for (let at = Math.ceil(from / step) * step; at <= to; at += step) found.push(at);
  return found;
}

class Labels {
  constructor(painter) {
    this.painter = painter;
    this.context = painter.raster.context;
    this.ratio = painter.layout.ratio;
  }

  draw(from, to, chosen, hasChain) {
    const { context } = this;
    context.font = `${11 * this.ratio}px ${FONT}`;
    context.textBaseline = "middle";
    this.drawAxis(from, to);
    this.drawReasons();
    if (!hasChain) this.drawArrows();
    if (chosen !== null) this.drawChosen(chosen);
  }

  drawAxis(from, to) {
    const { context, painter, ratio } = this;
    const { tick } = painter.model;
    context.fillStyle = painter.colours.css.ink;
    context.textAlign = "center";
    for (const time of marks(from, to, painter.raster.width / ratio)) {
      const x = painter.x(time / tick);
      const text = timeAt(time, to - from);
      const half = context.measureText(text).width / 2 + 2;
      const within = Math.min(painter.raster.width - half, Math.max(half, x));
      context.fillText(text, within, (AXIS / 2) * ratio);
    }
  }

  // Within held periods that are wide enough: why, how long, for whom.
  drawReasons() {
    const { context, painter, ratio } = this;
    const { model } = painter;
    if (painter.isSummed) return;
    const lane = painter.lanes[0];
    const y = (lane.top + lane.bottom) / 2;
    context.textAlign = "center";
    model.eachHeld(painter.from, painter.to, (i) => {
      const left = Math.max(0, painter.x(model.held.from[i]));
      const end = model.held.from[i] + model.held.length[i];
      const right = Math.min(painter.raster.width, painter.x(end));
      if (right - left < 50 * ratio) return;
      const text = this.fitting(heldWords(model, i), right - left - 10 * ratio);
      if (!text) return;
      context.lineWidth = 3 * ratio;
      context.lineJoin = "round";
      context.strokeStyle = "rgba(60, 20, 0, 0.75)";
      context.strokeText(text, (left + right) / 2, y);
      context.fillStyle = "#ffffff";
      context.fillText(text, (left + right) / 2, y);
    });
  }

  // The longest of several wordings that has room.
  fitting(wordings, width) {
    return wordings.find((it) => this.context.measureText(it).width <= width);
  }

  drawArrows() {
    const { context, painter, ratio } = this;
    const { steps } = painter.model;
    const first = lowerBound(steps.at, painter.from);
    const last = lowerBound(steps.at, painter.to);
    if (last - first > MOST_ARROWS) return;
    context.strokeStyle = context.fillStyle = painter.colours.css.ink;
    context.lineWidth = 1.25 * ratio;
    for (let i = first; i < last; i++) {
      const [from, to] = [painter.lanes[steps.from[i]], painter.lanes[steps.to[i]]];
      const isDown = to.top > from.top;
      const [start, tip] = isDown ? [from.bottom, to.top] : [from.top, to.bottom];
      this.arrow(Math.round(painter.x(steps.at[i])) + 0.5, start, tip, isDown ? 1 : -1);
    }
  }

  arrow(x, start, tip, direction) {
    const { context, ratio } = this;
    const head = 5 * ratio;
    context.beginPath();
    context.moveTo(x, start);
    context.lineTo(x, tip - direction * head);
    context.stroke();
    context.beginPath();
    context.moveTo(x, tip);
    context.lineTo(x - head * 0.7, tip - direction * head);
    context.lineTo(x + head * 0.7, tip - direction * head);
    context.fill();
  }

  drawChosen(i) {
    const { context, painter, ratio } = this;
    const { model } = painter;
    const lane = painter.lanes[model.task[i]];
    const [top, bottom] = lane.rowTops[model.rows[0][i] % lane.rows];
    const [left, right] = [painter.x(model.queued[i]), painter.x(model.end[i])];
    context.strokeStyle = painter.colours.css.ink;
    context.lineWidth = 2 * ratio;
    const width = Math.max(right - left, 2 * ratio) + 4 * ratio;
    context.strokeRect(left - 2 * ratio, top - 2 * ratio, width, bottom - top + 4 * ratio);
  }
}
