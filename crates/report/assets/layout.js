// Where the lanes of a run lie, from top to bottom, in pixels of the canvas.

const AXIS = 24;
const GAP = 5;
// A row of system calls, in CSS pixels.
const CALL_ROW = 4;

function heightOf(lane) {
  switch (lane.kind) {
    case "scheduler": return 18;
    case "group": return Math.min(28, Math.max(10, lane.rows * 4));
    case "position": return 84;
    default: return lane.rows === 1 ? 18 : Math.min(96, Math.max(24, lane.rows * 7));
  }
}

function layOut(model, ratio) {
  let top = AXIS;
  const offsets = stacked(model.head.lanes);
  const lanes = model.head.lanes.map((lane, number) => {
    const height = heightOf(lane) + lane.calls * CALL_ROW;
    const placed = { ...lane, number, cssTop: top, cssHeight: height, offset: offsets[number] };
    placed.top = Math.round(top * ratio);
    placed.bottom = Math.round((top + height) * ratio);
    const calls = lane.calls * CALL_ROW + (lane.calls ? 1 : 0);
    placed.callTops = callTops(placed, ratio);
    placed.rowTops = rowTops({ ...placed, top: placed.top + Math.round(calls * ratio) });
    top += height + GAP;
    return placed;
  });
  return { lanes, height: top, ratio };
}

// The first row of each task within its group's lane.
function stacked(lanes) {
  const used = new Map();
  return lanes.map((lane) => {
    if (lane.group === null) return 0;
    const before = used.get(lane.group) || 0;
    used.set(lane.group, before + lane.rows);
    return before;
  });
}

// Top and bottom of each row of calls.
function callTops({ top, calls }, ratio) {
  const at = (row) => Math.round(top + row * CALL_ROW * ratio);
  return Array.from({ length: calls }, (_, row) => [at(row), at(row + 1) - 1]);
}

// Top and bottom of each row; there is a gap where there is room for one.
function rowTops({ top, bottom, rows }) {
  const height = (bottom - top) / rows;
  const gap = rows > 1 && height >= 5 ? 1 : 0;
  return Array.from({ length: rows }, (_, row) => {
    const from = Math.floor(top + row * height);
    return [from, Math.max(from + 1, Math.floor(top + (row + 1) * height) - gap)];
  });
}
