// The colours of layers and operations. What a scheduler withholds is warm, and hatched besides.

const COLOURS = {
  computing: "#74b816", core: "#a9e34b", pause: "#ced4da", task: "#94d82d", page: "#66a80f",
  dirty_limit: "#5c940d", lock: "#b08968", journal: "#7f5539", tag: "#a47148",
  throttle: "#d6336c", limits: "#c0ca33", plug: "#e6b800", others_first: "#8f78d8",
  device_full: "#5f3dc4", withheld: "#e8590c", device_shared: "#74a9cf", host: "#868e96",
  requeued: "#495057", device: "#3b8ac4",
  interrupt: "#15aabf", read: "#3b82f6", write: "#2a9d6f", discard: "#9c6ade", flush: "#d6569b",
  higher_class_in_flight: "#9c36b5", process_idles: "#e03131", group_idles: "#f06418",
  turn_not_done: "#f2a007", group_not_done: "#d9480f", async_in_flight: "#c2255c",
  sync_in_flight: "#a61e4d", quantum: "#f59f00", async_depth: "#b35c00",
  nobody_chosen: "#996b5b", batch_drains: "#c92a2a", no_token: "#e67700",
};

// Calls are paler than what they do.
const CALL_COLOURS = { read: "#7fa9dc", write: "#66b89c", sync: "#d0718f", discard: "#b39ddb" };
const callColour = (name) => CALL_COLOURS[name.split(" ").pop()];

const LIGHT = { paper: "#ffffff", lane: "#f3f5f7", grid: "#dde2e7", ink: "#1c2126" };
const DARK = { paper: "#15191d", lane: "#1e242a", grid: "#333b43", ink: "#e4e8ec" };

// A pixel, of which the lowest byte is red.
function pixel(colour) {
  const value = parseInt(colour.slice(1), 16);
  const [red, green, blue] = [value >> 16, (value >> 8) & 255, value & 255];
  return ((255 << 24) | (blue << 16) | (green << 8) | red) >>> 0;
}

// Nearer to another colour by a part.
function blend(colour, other, part) {
  const [a, b] = [parseInt(colour.slice(1), 16), parseInt(other.slice(1), 16)];
  let mixed = 0;
  for (const shift of [16, 8, 0]) {
    const [from, to] = [(a >> shift) & 255, (b >> shift) & 255];
    mixed |= Math.round(from + (to - from) * part) << shift;
  }
  return `#${mixed.toString(16).padStart(6, "0")}`;
}

function isDark() {
  const chosen = document.documentElement.dataset.theme;
  if (chosen) return chosen === "dark";
  return matchMedia("(prefers-color-scheme: dark)").matches;
}

// The pixels of a run's kinds: one to fill with, and one to hatch with.
function palette(model, isPrinted) {
  const paper = isPrinted || !isDark() ? LIGHT : DARK;
  const pair = (name, isHeld) => {
    const colour = COLOURS[name] || "#868e96";
    return [pixel(colour), pixel(isHeld ? blend(colour, paper.paper, 0.55) : colour)];
  };
  const pixels = {};
  for (const name of Object.keys(paper)) pixels[name] = pixel(paper[name]);
  return {
    css: paper,
    ...pixels,
    band: pixel(blend(paper.lane, "#3b8ac4", 0.35)),
    kinds: model.head.kinds.map((name, i) => pair(name, model.head.holds[i])),
    calls: model.head.callNames.map((name) => pixel(callColour(name))),
    operations: OPERATIONS.map((name) => pair(name, false)),
  };
}
