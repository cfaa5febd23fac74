// What is shown, in words and in a table.

// Of a request so many parts are told.
const MOST_TOLD = 12;
const UNITS = [["s", 1e9], ["ms", 1e6], ["µs", 1e3], ["ns", 1]];

// A length of time, with three digits.
function timeSpan(nanos) {
  const [unit, size] = UNITS.find(([, size]) => nanos >= size) || UNITS[3];
  const value = nanos / size;
  const digits = value >= 100 ? 0 : value >= 10 ? 1 : 2;
  return `${value.toFixed(unit === "ns" ? 0 : digits)} ${unit}`;
}

// A time on an axis of which so much is seen: the digits that differ.
function timeAt(nanos, seen) {
  if (nanos === 0) return "0";
  const [unit, size] = seen >= 2e9 ? UNITS[0] : seen >= 2e6 ? UNITS[1] : UNITS[2];
  const finest = seen / 20 / size;
  const digits = Math.min(3, Math.max(0, Math.ceil(-Math.log10(finest))));
  return `${(nanos / size).toLocaleString("en", { maximumFractionDigits: digits })} ${unit}`;
}

function nameOf(kind) {
  return kind.replaceAll("_", " ");
}

// Why requests are withheld, from long to short.
function heldWords(model, i) {
  const reason = nameOf(model.head.kinds[model.held.kind[i]]);
  const long = timeSpan(model.held.length[i] * model.tick);
  const whom = model.held.whom[i];
  const words = [`${reason}, ${long}`, long];
  if (whom) words.unshift(`${reason} for ${model.head.lanes[whom - 1].name}, ${long}`);
  return words;
}

function requestWords(model, i) {
  const { head, tick } = model;
  const parts = [];
  for (let p = model.starts[i]; p < model.starts[i + 1]; p++) {
    parts.push(`${nameOf(head.kinds[model.kinds[p]])} ${timeSpan(model.parts[p] * tick)}`);
  }
  if (parts.length > MOST_TOLD) parts.splice(MOST_TOLD, Infinity, "and so on");
  const what = OPERATIONS[model.op[i] & 3];
  const where = model.sectors[i] ? ` of ${model.sectors[i]} sectors at ${model.sector[i]}` : "";
  const chosen = model.reason[i] ? `; chosen: ${nameOf(head.reasons[model.reason[i] - 1])}` : "";
  const merged = model.merged[i] ? `; ${model.merged[i]} merged` : "";
  const total = timeSpan((model.end[i] - model.queued[i]) * tick);
  const since = timeAt(model.queued[i] * tick, 2e6);
  const who = head.lanes[model.task[i]].name;
  return `${who}: ${what}${where}, ${total} since ${since}: ${parts.join(", ")}${chosen}${merged}`;
}

function callWords(model, i) {
  const { calls, head, tick } = model;
  const since = timeAt(calls.from[i] * tick, 2e6);
  const length = timeSpan(calls.length[i] * tick);
  const who = head.lanes[calls.task[i]].name;
  return `${who}: call ${head.callNames[calls.what[i]]}, ${length} since ${since}`;
}

// Time by lane and kind between two times, in ticks.
function totals(model, from, to) {
  const sums = model.head.lanes.map(() => new Map());
  const add = (lane, kind, time) => {
    if (time > 0) sums[lane].set(kind, (sums[lane].get(kind) || 0) + time);
  };
  const within = (first, last) => Math.min(last, to) - Math.max(first, from);
  const isWhole = model.isWhole(from, to);
  if (isWhole) {
    model.eachHeld(from, to, (i) => {
      const first = model.held.from[i];
      add(0, model.held.kind[i], within(first, first + model.held.length[i]));
    });
  }
  if (!isWhole || model.begun(from, to) > MOST_BARS) {
    const { level, width, buckets } = model.level((to - from) / 1000);
    const last = Math.min(buckets, Math.ceil(to / width));
    for (const it of model.series.filter((it) => it.lane > 0 || !isWhole)) {
      const unit = it.most / model.head.pyramid.full;
      for (let b = Math.floor(from / width); b < last; b++) {
        add(it.lane, it.kind, it.levels[level][b] * unit * within(b * width, (b + 1) * width));
      }
    }
    return sums;
  }
  const device = model.head.lanes.findIndex((it) => it.kind === "device");
  model.each(from, to, (i) => {
    let at = model.queued[i];
    for (let p = model.starts[i]; p < model.starts[i + 1]; p++) {
      const end = at + model.parts[p];
      add(model.task[i], model.kinds[p], within(at, end));
      at = end;
    }
    add(device, model.op[i] & 3, within(model.issued[i], model.completed[i]));
  });
  return sums;
}

// A sentence on what a run does between two times, in nanoseconds.
function describe(model, from, to) {
  const [first, last] = [from / model.tick, Math.min(to / model.tick, model.head.end)];
  if (last <= first) return `${model.head.title}: the run is over.`;
  const sums = totals(model, first, last);
  const all = new Map();
  model.head.lanes.forEach((lane, number) => {
    if (lane.kind !== "task") return;
    for (const [kind, time] of sums[number]) all.set(kind, (all.get(kind) || 0) + time);
  });
  const whole = [...all.values()].reduce((sum, it) => sum + it, 0) || 1;
  const most = [...all].sort((a, b) => b[1] - a[1]).filter(([, time]) => time > whole / 200);
  const parts = most.slice(0, 3).map(([kind, time]) => {
    return `${Math.round((100 * time) / whole)} % ${nameOf(model.head.kinds[kind])}`;
  });
  const count = model.begun(first, last).toLocaleString("en");
  const begin = model.isWhole(first, last)
    ? `${count} requests begin`
    : `sums over ${timeSpan(model.head.pyramid.width * model.tick)} each`;
  const where = parts.length ? `; their time: ${parts.join(", ")}` : "";
  const held = [...sums[0].values()].reduce((sum, it) => sum + it, 0);
  const part = Math.round((100 * held) / (last - first));
  const holds = held ? `; requests withheld ${part} % of the time` : "";
  return `${model.head.title}: ${begin}${where}${holds}.`;
}

// A table of the time in each lane by kind.
function tableOf(model, from, to) {
  const table = document.createElement("table");
  table.createCaption().textContent = model.head.title;
  const cells = (row, tag, words) => words.forEach((word) => {
    const cell = row.appendChild(document.createElement(tag));
    cell.textContent = word;
    if (tag === "th") cell.scope = "col";
  });
  cells(table.createTHead().insertRow(), "th", ["lane", "what", "time"]);
  const body = table.createTBody();
  const last = Math.min(to / model.tick, model.head.end);
  totals(model, from / model.tick, last).forEach((kinds, lane) => {
    const { name, kind: what } = model.head.lanes[lane];
    for (const [kind, time] of [...kinds].sort((a, b) => b[1] - a[1])) {
      const said = nameOf(model.kindName(lane, kind));
      const label = what === "scheduler" ? "scheduler withholds" : name;
      cells(body.insertRow(), "td", [label, said, timeSpan(time * model.tick)]);
    }
  });
  return table;
}
