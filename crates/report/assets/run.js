// A run on the page: its canvas, its lanes' names, and what is pointed at or chosen.

class Run {
  constructor(element, model) {
    this.model = model;
    this.stage = element.querySelector(".stage");
    this.names = element.querySelector(".lanes");
    this.raster = new Raster(element.querySelector("canvas"));
    this.chosen = this.chain = this.mark = null;
    this.layOut();
  }

  layOut() {
    const ratio = Math.min(2, window.devicePixelRatio || 1);
    this.layout = layOut(this.model, ratio);
    const width = Math.max(100, Math.round(this.stage.clientWidth * ratio));
    this.stage.style.height = `${this.layout.height}px`;
    this.raster.resize(width, Math.round(this.layout.height * ratio));
    this.writeNames();
    this.dress(false);
  }

  dress(isPrinted) {
    const colours = palette(this.model, isPrinted);
    this.painter = new Painter(this.model, this.raster, this.layout, colours);
    this.labels = new Labels(this.painter);
    this.places = new Places(this.labels);
  }

  writeNames() {
    this.names.replaceChildren(...this.layout.lanes.map((lane) => {
      const name = document.createElement("span");
      name.textContent = lane.name;
      name.title = lane.name;
      name.className = `lane-${lane.kind}${lane.group === null ? "" : " within"}`;
      name.style.top = `${lane.cssTop}px`;
      name.style.height = `${lane.cssHeight}px`;
      return name;
    }));
    this.names.style.height = `${this.layout.height}px`;
  }

  draw(view) {
    const began = performance.now();
    this.painter.paint(view.from, view.to);
    this.labels.draw(view.from, view.to, this.chosen, this.chain !== null);
    if (this.chain) this.places.drawChain(this.chain);
    else if (this.mark) this.places.drawMark(this.mark);
    this.took = performance.now() - began;
  }

  // What lies under a place of the stage: a request, a held period, or nothing.
  at(x, y) {
    const { model, painter, layout } = this;
    const time = painter.from + (x * layout.ratio) / painter.scale;
    const slack = (2 * layout.ratio) / painter.scale;
    const lane = layout.lanes.find((it) => y >= it.cssTop && y <= it.cssTop + it.cssHeight);
    if (!lane) return null;
    if (lane.kind === "scheduler") return this.heldAt(time, slack);
    if (painter.isSummedAt(time)) return null;
    const call = this.callAt(lane, time, slack, y * layout.ratio);
    if (call !== null) return { words: callWords(model, call) };
    let found = null;
    model.each(time - slack, time + slack, (i) => {
      if (found === null && this.covers(i, lane, y * layout.ratio)) found = i;
    });
    return found === null ? null : { request: found, words: requestWords(model, found) };
  }

  callAt(lane, time, slack, y) {
    const { calls } = this.model;
    const row = lane.callTops.findIndex(([top, bottom]) => y >= top && y <= bottom);
    let found = null;
    if (row < 0) return found;
    this.model.eachCall(time - slack, time + slack, (i) => {
      if (calls.task[i] === lane.number && calls.row[i] === row) found = i;
    });
    return found;
  }

  heldAt(time, slack) {
    let found = null;
    this.model.eachHeld(time - slack, time + slack, (i) => (found = i));
    return found === null ? null : { words: heldWords(this.model, found)[0] };
  }

  covers(i, lane, y) {
    const { model } = this;
    const row = { task: 0, queue: 1, device: 2 }[lane.kind];
    const own = { task: model.task[i], queue: model.queue[i], device: lane.number }[lane.kind];
    if (row === undefined || own !== lane.number) return false;
    const [top, bottom] = lane.rowTops[model.rows[row][i] % lane.rows];
    return y >= top && y <= bottom;
  }

  // The request after the chosen one, or before it, or else the first that is shown.
  step(direction, view) {
    const first = lowerBound(this.model.queued, view.from / this.model.tick);
    const next = this.chosen === null ? first : this.chosen + direction;
    if (next < 0 || next >= this.model.count) return null;
    this.chosen = next;
    const { tick, queued, end } = this.model;
    const [from, to] = [queued[next] * tick, end[next] * tick];
    if (from < view.from || to > view.to) view.goTo(from, to);
    else view.changed();
    return requestWords(this.model, next);
  }

  // The held period after the middle of what is shown, or before it.
  stepHeld(direction, view) {
    const { held, tick } = this.model;
    const middle = (view.from + view.to) / 2 / tick;
    const here = lowerBound(held.from, middle);
    const isInside = here > 0 && held.from[here - 1] + held.length[here - 1] >= middle;
    const next = direction > 0 ? here : here - (isInside ? 2 : 1);
    if (next < 0 || next >= held.from.length) return null;
    view.goTo(held.from[next] * tick, (held.from[next] + held.length[next]) * tick);
    return heldWords(this.model, next)[0];
  }
}
