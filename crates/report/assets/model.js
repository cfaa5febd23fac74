// A run as it is drawn: what its columns say, and which requests are within a time.

const OPERATIONS = ["read", "write", "discard", "flush"];
// Requests are looked through in blocks, of which one is known: when the last of it is done.
const BLOCK = 256;

class Model {
  constructor(head, bytes) {
    this.head = head;
    this.tick = head.tick;
    this.columns = new Map();
    let at = 0;
    for (const [name, length] of head.columns) {
      this.columns.set(name, bytes.subarray(at, at + length));
      at += length;
    }
    this.count = head.requests;
    this.readRequests();
    this.readParts();
    this.readPlaces();
    this.readOthers();
    this.readPyramid();
  }

  column(name, out) {
    return numbers(this.columns.get(name), out);
  }

  readRequests() {
    const count = this.count;
    this.queued = deltas(this.columns.get("queued"), new Float64Array(count));
    this.inserted = this.column("inserted", new Float64Array(count));
    this.op = this.columns.get("op");
    this.task = this.column("task", new Uint16Array(count));
    this.queue = this.column("queue", new Uint16Array(count));
    this.sectors = this.column("sectors", new Uint32Array(count));
    this.merged = this.column("merged", new Uint32Array(count));
    this.reason = this.columns.get("reason");
    this.rows = ["task_row", "queue_row", "device_row"].map((it) => this.columns.get(it));
  }

  // Where the time of each request went, when it was issued, and when it was done.
  readParts() {
    const { count } = this;
    const many = this.columns.get("many");
    this.starts = new Uint32Array(count + 1);
    for (let i = 0; i < count; i++) this.starts[i + 1] = this.starts[i] + many[i];
    this.kinds = this.columns.get("kinds");
    this.parts = this.column("parts", new Float64Array(this.starts[count]));
    const surprise = this.column("issued", new Float64Array(count));
    const untold = this.column("untold", new Float64Array(count));
    this.end = new Float64Array(count);
    this.completed = new Float64Array(count);
    this.issued = new Float64Array(count);
    this.blocks = new Float64Array(Math.ceil(count / BLOCK));
    for (let i = 0; i < count; i++) {
      let [total, last, other] = [0, 0, 0];
      for (let p = this.starts[i]; p < this.starts[i + 1]; p++) {
        other = last;
        total += last = this.parts[p];
      }
      this.end[i] = this.queued[i] + total;
      this.completed[i] = this.end[i] - untold[i];
      // The device's own part is the last one, or the one before the end that is told.
      const expected = Math.max(0, total - untold[i] - (untold[i] ? other : last));
      this.issued[i] = this.queued[i] + expected + signed(surprise[i]);
      // One was added, so that zero is free for what passed the scheduler by.
      this.inserted[i] = this.inserted[i] ? this.queued[i] + this.inserted[i] - 1 : Infinity;
      const block = (i / BLOCK) | 0;
      if (this.end[i] > this.blocks[block]) this.blocks[block] = this.end[i];
    }
  }

  // Each request begins so far from the end of the one before of its task.
  readPlaces() {
    this.sector = this.column("sector", new Float64Array(this.count));
    const ends = new Float64Array(this.head.lanes.length);
    for (let i = 0; i < this.count; i++) {
      const task = this.task[i];
      this.sector[i] = ends[task] + signed(this.sector[i]);
      ends[task] = this.sector[i] + this.sectors[i];
    }
  }

  readOthers() {
    const { held, steps, calls } = this.head;
    this.calls = {
      from: deltas(this.columns.get("call_from"), new Float64Array(calls)),
      length: this.column("call_length", new Float64Array(calls)),
      what: this.columns.get("call_what"),
      task: this.column("call_task", new Uint16Array(calls)),
      row: this.columns.get("call_row"),
    };
    // When the last call of all before each is over, so that the first that matters is found.
    this.calls.over = new Float64Array(calls);
    for (let i = 0, over = 0; i < calls; i++) {
      over = Math.max(over, this.calls.from[i] + this.calls.length[i]);
      this.calls.over[i] = over;
    }
    this.held = {
      from: deltas(this.columns.get("held_from"), new Float64Array(held)),
      length: this.column("held_length", new Float64Array(held)),
      kind: this.column("held_kind", new Uint16Array(held)),
      whom: this.column("held_for", new Uint16Array(held)),
    };
    this.steps = {
      at: deltas(this.columns.get("step_at"), new Float64Array(steps)),
      from: this.column("step_from", new Uint16Array(steps)),
      to: this.column("step_to", new Uint16Array(steps)),
    };
  }

  readPyramid() {
    const { levels, series } = this.head.pyramid;
    const bytes = this.columns.get("series");
    const size = levels.reduce((sum, it) => sum + it, 0);
    this.series = series.map((it, place) => {
      const levelled = [];
      let at = place * size;
      for (const buckets of levels) {
        levelled.push(bytes.subarray(at, at + buckets));
        at += buckets;
      }
      return { ...it, levels: levelled };
    });
    this.byLane = this.head.lanes.map((_, lane) => this.series.filter((it) => it.lane === lane));
    this.lowest = this.columns.get("lowest");
    this.highest = this.columns.get("highest");
  }

  // Calls `visit` with each request that is under way between two times, in ticks.
  each(from, to, visit) {
    const end = lowerBound(this.queued, to);
    for (let block = 0; block * BLOCK < end; block++) {
      if (this.blocks[block] < from) continue;
      const last = Math.min(end, (block + 1) * BLOCK);
      for (let i = block * BLOCK; i < last; i++) if (this.end[i] >= from) visit(i);
    }
  }

  // Whether all that happens between two times is there one by one.
  isWhole(from, to) {
    const { kept, end } = this.head;
    if (kept === null) return true;
    const [first, last] = [Math.max(0, from), Math.min(to, end)];
    return first >= last || kept.some(([begin, end]) => begin <= first && last <= end);
  }

  // Times between two in which all is there one by one.
  eachKept(from, to, visit) {
    for (const [begin, end] of this.head.kept || []) {
      if (end > from && begin < to) visit(begin, end);
    }
  }

  // How many requests begin between two times.
  begun(from, to) {
    return lowerBound(this.queued, to) - lowerBound(this.queued, from);
  }

  // Held periods between two times.
  eachHeld(from, to, visit) {
    const { held } = this;
    const first = Math.max(0, lowerBound(held.from, from) - 1);
    for (let i = first; i < held.from.length && held.from[i] < to; i++) {
      if (held.from[i] + held.length[i] >= from) visit(i);
    }
  }

  // Calls that are under way between two times.
  eachCall(from, to, visit) {
    const { calls } = this;
    for (let i = lowerBound(calls.over, from); i < calls.from.length && calls.from[i] < to; i++) {
      if (calls.from[i] + calls.length[i] >= from) visit(i);
    }
  }

  // The coarsest level whose buckets are no longer than so many ticks.
  level(ticks) {
    const { width, levels } = this.head.pyramid;
    let level = 0;
    while (level + 1 < levels.length && width * 4 ** (level + 1) <= ticks) level++;
    return { level, width: width * 4 ** level, buckets: levels[level] };
  }

  kindName(lane, kind) {
    return this.head.lanes[lane].kind === "device" ? OPERATIONS[kind] : this.head.kinds[kind];
  }
}

async function loadModel(number) {
  const head = JSON.parse(document.getElementById(`head-${number}`).textContent);
  const carrier = document.getElementById(`columns-${number}`);
  const bytes = await inflate(carrier.textContent);
  carrier.remove();
  return new Model(head, bytes);
}
