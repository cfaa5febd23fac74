// Draws a run between two times: requests one by one, or sums where there are too many.

// So many requests are drawn one by one.
const MOST_BARS = 10000;
// So many are shown in the lane of positions.
const MOST_DOTS = 8000;

class Painter {
  constructor(model, raster, layout, colours) {
    Object.assign(this, { model, raster, layout, colours });
    this.lanes = layout.lanes;
    this.device = this.lanes.find((it) => it.kind === "device");
    this.position = this.lanes.find((it) => it.kind === "position");
  }

  // `from` and `to` are in nanoseconds.
  paint(from, to) {
    const { model, raster } = this;
    this.from = from / model.tick;
    this.to = to / model.tick;
    this.scale = raster.width / (this.to - this.from);
    raster.clear(this.colours.paper);
    for (const lane of this.lanes) {
      raster.bar(0, raster.width, lane.top, lane.bottom, this.colours.lane);
    }
    this.paintGrid();
    this.areMany = model.begun(this.from, this.to) > MOST_BARS;
    this.isSummed = this.areMany || !model.isWhole(this.from, this.to);
    if (this.isSummed) this.paintSums();
    else this.paintBars();
    this.paintCalls();
    this.paintHeld();
    if (this.isSummed && !this.areMany) this.paintKept();
    this.paintMarks();
    this.paintEnd();
    raster.show();
  }

  x(time) {
    return (time - this.from) * this.scale;
  }

  // Whether what lies at a time is a sum.
  isSummedAt(time) {
    return this.areMany || !this.model.isWhole(time, time + 1);
  }

  // Requests one by one, over the sums, where they are there.
  paintKept() {
    const { model, raster, lanes, colours } = this;
    model.eachKept(this.from, this.to, (begin, end) => {
      const [left, right] = [Math.max(0, this.x(begin)), Math.min(raster.width, this.x(end))];
      if (right - left < 2) return;
      for (const lane of lanes) {
        if (lane.kind !== "position") raster.bar(left, right, lane.top, lane.bottom, colours.lane);
      }
      raster.clip(left, right);
      model.each(begin, end, (i) => this.paintRequest(i));
      this.paintCalls();
      this.paintHeldBars();
      raster.clip(0, raster.width);
    });
  }

  // Above the lanes, thick: where requests are there one by one.
  paintMarks() {
    const { model, raster, lanes, colours } = this;
    const bottom = lanes[0].top - 1;
    model.eachKept(this.from, this.to, (begin, end) => {
      const left = this.x(begin);
      raster.bar(left, Math.max(left + 2, this.x(end)), bottom - 4, bottom, colours.ink);
    });
  }

  paintGrid() {
    const { tick } = this.model;
    for (const time of marks(this.from * tick, this.to * tick, this.raster.width)) {
      const x = Math.round(this.x(time / tick));
      this.raster.bar(x, x + 1, AXIS, this.raster.height, this.colours.grid);
    }
  }

  // What lies behind the end of the run.
  paintEnd() {
    const x = this.x(this.model.head.end);
    if (x >= this.raster.width) return;
    const { raster, colours } = this;
    const top = this.lanes[0].top;
    raster.bar(Math.max(0, x), raster.width, top, raster.height, colours.paper);
    if (x >= 0) raster.bar(x, x + 1, top, raster.height, colours.ink);
  }

  paintBars() {
    this.model.each(this.from, this.to, (i) => this.paintRequest(i));
  }

  paintRequest(i) {
    const { model, lanes } = this;
    const task = lanes[model.task[i]];
    const row = model.rows[0][i];
    const group = task.group === null ? null : lanes[task.group];
    const queue = lanes[model.queue[i]];
    const [since, until] = [model.inserted[i], model.issued[i]];
    let from = model.queued[i];
    for (let p = model.starts[i]; p < model.starts[i + 1]; p++) {
      const to = from + model.parts[p];
      const colours = this.colours.kinds[model.kinds[p]];
      this.bar(task, row, from, to, colours);
      if (group) this.bar(group, (task.offset + row) % group.rows, from, to, colours);
      if (to > since && from < until && queue.kind === "queue") {
        const [first, last] = [Math.max(from, since), Math.min(to, until)];
        this.bar(queue, model.rows[1][i], first, last, colours);
      }
      from = to;
    }
    this.edge(task, row, model.queued[i], from);
    const operation = this.colours.operations[model.op[i] & 3];
    this.bar(this.device, model.rows[2][i], until, model.completed[i], operation);
    this.edge(this.device, model.rows[2][i], until, model.completed[i]);
    this.dot(i, operation);
  }

  // Calls are thin bars above the requests of their task, where they can be told apart.
  paintCalls() {
    const { model, lanes, raster, colours } = this;
    const { calls } = model;
    if (lowerBound(calls.from, this.to) - lowerBound(calls.from, this.from) > MOST_BARS) return;
    model.eachCall(this.from, this.to, (i) => {
      const [top, bottom] = lanes[calls.task[i]].callTops[calls.row[i]];
      const [left, right] = [this.x(calls.from[i]), this.x(calls.from[i] + calls.length[i])];
      if (right < 0 || left > raster.width) return;
      raster.bar(left, right, top, bottom, colours.calls[calls.what[i]]);
      // A gap, so that a call can be told from the one before.
      if (left >= 0 && right - left >= 6) raster.bar(left, left + 1, top, bottom, colours.lane);
    });
  }

  bar(lane, row, from, to, colours) {
    const [left, right] = [this.x(from), this.x(to)];
    if (right < 0 || left > this.raster.width) return;
    const [top, bottom] = lane.rowTops[row % lane.rows];
    this.raster.hatched(left, right, top, bottom, colours);
  }

  // Where a bar begins, so that it can be told from the one before.
  edge(lane, row, from, to) {
    const left = this.x(from);
    if (left < 0 || this.x(to) - left < 6) return;
    const [top, bottom] = lane.rowTops[row % lane.rows];
    this.raster.bar(left, left + 1, top, bottom, this.colours.lane);
  }

  // Where on the disk a request is; a flush is nowhere.
  dot(i, [colour]) {
    const { model, position } = this;
    if (model.sectors[i] === 0) return;
    const part = model.sector[i] / model.head.pyramid.sectors;
    const y = Math.round(position.bottom - 3 - part * (position.bottom - position.top - 4));
    const left = this.x(model.issued[i]);
    const right = Math.max(left + 2, this.x(model.completed[i]));
    if (right >= 0) this.raster.bar(left, right, y, y + 2, colour);
  }

  paintSums() {
    for (const lane of this.lanes) {
      if (lane.kind !== "scheduler" && lane.kind !== "position") this.paintStack(lane);
    }
    this.paintPositions();
    const { model } = this;
    const first = lowerBound(model.queued, this.from);
    const last = lowerBound(model.queued, this.to);
    const stride = Math.ceil((last - first) / MOST_DOTS);
    for (let i = first - (first % stride); i < last; i += stride) {
      this.dot(i, this.colours.operations[model.op[i] & 3]);
    }
  }

  // In each column of pixels, how many requests are in which state on average.
  paintStack(lane) {
    const { model, raster } = this;
    const series = model.byLane[lane.number];
    const colours = lane.kind === "device" ? this.colours.operations : this.colours.kinds;
    const { level, width, buckets } = model.level(1 / this.scale);
    const unit = (lane.bottom - lane.top) / model.head.pyramid.full;
    for (let x = 0; x < raster.width; x++) {
      const first = Math.max(0, Math.floor((this.from + x / this.scale) / width));
      const behind = Math.ceil((this.from + (x + 1) / this.scale) / width);
      const last = Math.min(buckets, Math.max(first + 1, behind));
      let sum = 0;
      let bottom = lane.bottom;
      for (const it of series) {
        const values = it.levels[level];
        let own = 0;
        for (let bucket = first; bucket < last; bucket++) own += values[bucket];
        if (own === 0) continue;
        sum += own / (last - first);
        const top = Math.max(lane.top, lane.bottom - Math.ceil(sum * unit));
        if (top < bottom) raster.hatched(x, x + 1, top, bottom, colours[it.kind]);
        bottom = Math.min(bottom, top);
      }
    }
  }

  // Between which sectors the disk is.
  paintPositions() {
    const { model, raster, position } = this;
    const { width } = model.head.pyramid;
    const height = position.bottom - position.top - 4;
    for (let x = 0; x < raster.width; x++) {
      const first = Math.max(0, Math.floor((this.from + x / this.scale) / width));
      const behind = Math.ceil((this.from + (x + 1) / this.scale) / width);
      const last = Math.min(model.lowest.length, Math.max(first + 1, behind));
      let [low, high] = [256, 0];
      for (let bucket = first; bucket < last; bucket++) {
        if (model.lowest[bucket] && model.lowest[bucket] < low) low = model.lowest[bucket];
        if (model.highest[bucket] > high) high = model.highest[bucket];
      }
      if (high === 0) continue;
      const y = (part) => Math.round(position.bottom - 2 - (part / 255) * height);
      raster.bar(x, x + 1, y(high), y(low) + 1, this.colours.band);
    }
  }

  paintHeld() {
    const { model } = this;
    const lane = this.lanes[0];
    const begun = lowerBound(model.held.from, this.to) - lowerBound(model.held.from, this.from);
    if (begun > MOST_BARS || !model.isWhole(this.from, this.to)) return this.paintStack(lane);
    this.paintHeldBars();
  }

  paintHeldBars() {
    const { model } = this;
    const lane = this.lanes[0];
    model.eachHeld(this.from, this.to, (i) => {
      const from = model.held.from[i];
      this.bar(lane, 0, from, from + model.held.length[i], this.colours.kinds[model.held.kind[i]]);
    });
  }
}
