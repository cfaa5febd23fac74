// Buttons that show a finding or a critical path in the timeline, and how such a path is drawn.

// No less than this is shown around a finding, in nanoseconds.
const LEAST_SHOWN = 2e5;

// Shows a time, with as much again on both sides.
function showPlace(run, runs, view, from, to) {
  const length = Math.max(to - from, LEAST_SHOWN);
  runs.forEach((it) => (it.mark = it.chain = null));
  view.show(from - length, to + length);
  run.mark = { from, to };
}

function chainWords(model, chain) {
  const { head, tick } = model;
  const long = chain.links.filter(([from, to]) => to - from >= (chain.to - chain.from) / 50);
  const parts = long.slice(0, MOST_TOLD).map(([from, to, lane, layer]) => {
    return `${head.lanes[lane].name} ${nameOf(layer)} ${timeSpan((to - from) * tick)}`;
  });
  const whole = timeSpan((chain.to - chain.from) * tick);
  return `A call of ${head.lanes[chain.task].name}, ${whole}: ${parts.join(", then ")}.`;
}

function listenToPlaces(runs, view) {
  document.querySelectorAll("button.show").forEach((button) => {
    const { run: number, chain, from, to } = button.dataset;
    const run = runs[number];
    button.hidden = !run || (chain && !run.model.head.chains[chain]);
    if (button.hidden) return;
    button.addEventListener("click", () => {
      if (chain) {
        const it = run.model.head.chains[chain];
        const { tick } = run.model;
        showPlace(run, runs, view, it.from * tick, it.to * tick);
        run.chain = it;
        byId("pointed").textContent = chainWords(run.model, it);
      } else {
        showPlace(run, runs, view, Number(from), Number(to));
        byId("pointed").textContent = button.closest("li").firstElementChild.textContent;
      }
      run.stage.focus({ preventScroll: true });
      run.stage.scrollIntoView({ block: "center" });
    });
  });
}

// The layers of callers have the colours of the timeline.
function dressLayers() {
  document.querySelectorAll("[data-layer]").forEach((it) => {
    it.style.backgroundColor = COLOURS[it.dataset.layer] || "#868e96";
  });
}

class Places {
  constructor(labels) {
    this.labels = labels;
    Object.assign(this, { painter: labels.painter, context: labels.context });
    this.ratio = labels.ratio;
  }

  // A frame around a time.
  drawMark({ from, to }) {
    const { context, painter, ratio } = this;
    const { tick } = painter.model;
    const [left, right] = [painter.x(from / tick), painter.x(to / tick)];
    const [top, bottom] = [painter.lanes[0].top, painter.raster.height];
    context.strokeStyle = painter.colours.css.ink;
    context.lineWidth = 1.5 * ratio;
    context.setLineDash([4 * ratio, 3 * ratio]);
    const inset = 2 * ratio;
    context.strokeRect(left, top - inset, Math.max(right - left, inset), bottom - top);
    context.setLineDash([]);
  }

  // All else fades, and the path goes from lane to lane.
  drawChain(chain) {
    const { context, painter, ratio } = this;
    const { width, height } = painter.raster;
    context.globalAlpha = 0.6;
    context.fillStyle = painter.colours.css.paper;
    context.fillRect(0, painter.lanes[0].top, width, height - painter.lanes[0].top);
    context.globalAlpha = 1;
    chain.links.forEach((link) => this.drawLink(link));
    context.strokeStyle = context.fillStyle = painter.colours.css.ink;
    context.lineWidth = 1.5 * ratio;
    let last = -Infinity;
    for (let i = 1; i < chain.links.length; i++) {
      const [before, link] = [chain.links[i - 1], chain.links[i]];
      const x = Math.round(painter.x(link[0])) + 0.5;
      // Arrows nearer to each other than this are one blot.
      if (before[2] === link[2] || x - last < 3 * ratio || x < 0 || x > width) continue;
      last = x;
      const [from, to] = [this.box(before[2]), this.box(link[2])];
      const isDown = to[0] > from[0];
      const [start, tip] = isDown ? [from[1], to[0]] : [from[0], to[1]];
      this.labels.arrow(x, start, tip, isDown ? 1 : -1);
    }
  }

  // Top and bottom of a path's bars in a lane.
  box(lane) {
    const { top, bottom } = this.painter.lanes[lane];
    const half = Math.min(bottom - top, 14 * this.ratio) / 2;
    return [Math.round((top + bottom) / 2 - half), Math.round((top + bottom) / 2 + half)];
  }

  drawLink([from, to, lane, layer]) {
    const { context, painter, ratio } = this;
    const [left, right] = [painter.x(from), painter.x(to)];
    if (right < 0 || left > painter.raster.width) return;
    const [top, bottom] = this.box(lane);
    const wide = Math.max(right - left, ratio);
    context.fillStyle = COLOURS[layer] || "#868e96";
    context.fillRect(left, top, wide, bottom - top);
    if (wide < 3 * ratio) return;
    context.strokeStyle = painter.colours.css.ink;
    context.lineWidth = ratio;
    context.strokeRect(left, top, wide, bottom - top);
    const text = this.labels.fitting([nameOf(layer), ""], wide - 6 * ratio);
    if (!text) return;
    context.textAlign = "center";
    context.lineWidth = 2.5 * ratio;
    context.lineJoin = "round";
    context.strokeStyle = "rgba(20, 20, 20, 0.75)";
    const middle = (Math.max(0, left) + Math.min(painter.raster.width, right)) / 2;
    context.strokeText(text, middle, (top + bottom) / 2);
    context.fillStyle = "#ffffff";
    context.fillText(text, middle, (top + bottom) / 2);
  }
}
