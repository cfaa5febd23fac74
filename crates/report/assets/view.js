// The time that is shown, the same in all runs; whoever moves it moves all.

// No less than this is shown, in nanoseconds.
const SHORTEST = 1000;

class View {
  constructor(end) {
    this.end = end;
    this.from = 0;
    this.to = end;
    this.listeners = [];
    this.isWaiting = false;
  }

  show(from, to) {
    const span = Math.min(this.end, Math.max(SHORTEST, to - from));
    this.from = Math.min(this.end - span, Math.max(0, from));
    this.to = this.from + span;
    this.changed();
  }

  changed() {
    if (this.isWaiting) return;
    this.isWaiting = true;
    requestAnimationFrame(() => {
      this.isWaiting = false;
      this.listeners.forEach((it) => it());
    });
  }

  span() {
    return this.to - this.from;
  }

  whole() {
    this.show(0, this.end);
  }

  // By parts of what is shown.
  pan(parts) {
    const by = parts * this.span();
    this.show(this.from + by, this.to + by);
  }

  // What is at a part of the width stays there.
  zoom(factor, at = 0.5) {
    const fixed = this.from + at * this.span();
    const span = Math.min(this.end, Math.max(SHORTEST, this.span() * factor));
    this.show(fixed - at * span, fixed + (1 - at) * span);
  }

  // Brings a time to the middle, without zooming more than need be.
  goTo(from, to) {
    const span = Math.min(this.end, Math.max((to - from) * 4, Math.min(this.span(), 1e8)));
    const middle = (from + to) / 2;
    this.show(middle - span / 2, middle + span / 2);
  }
}

// The keys of a timeline: what they do with the view.
const KEYS = {
  ArrowLeft: (view, event) => view.pan(event.shiftKey ? -1 : -0.1),
  ArrowRight: (view, event) => view.pan(event.shiftKey ? 1 : 0.1),
  "+": (view) => view.zoom(0.5),
  "=": (view) => view.zoom(0.5),
  "-": (view) => view.zoom(2),
  ArrowUp: (view) => view.zoom(0.5),
  ArrowDown: (view) => view.zoom(2),
  0: (view) => view.whole(),
  Home: (view) => view.show(0, view.span()),
  End: (view) => view.show(view.end - view.span(), view.end),
};

// Mouse, wheel and fingers on a stage.
function listen(stage, view, onPoint) {
  const fingers = new Map();
  const part = (event) => (event.clientX - stage.getBoundingClientRect().left) / stage.clientWidth;
  stage.addEventListener("wheel", (event) => {
    event.preventDefault();
    if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
      view.pan((event.deltaX || event.deltaY) / 1000);
    } else {
      view.zoom(1.0015 ** event.deltaY, part(event));
    }
  }, { passive: false });
  stage.addEventListener("pointerdown", (event) => {
    stage.setPointerCapture(event.pointerId);
    fingers.set(event.pointerId, part(event));
  });
  stage.addEventListener("pointermove", (event) => {
    const now = part(event);
    const before = fingers.get(event.pointerId);
    if (before === undefined) return onPoint(event, false);
    if (fingers.size === 1) {
      view.pan(before - now);
    } else {
      const [other] = [...fingers].filter(([id]) => id !== event.pointerId).map(([, at]) => at);
      const factor = Math.abs(before - other) / Math.max(0.01, Math.abs(now - other));
      view.zoom(Math.min(2, Math.max(0.5, factor)), (now + other) / 2);
    }
    fingers.set(event.pointerId, now);
  });
  const away = (event) => fingers.delete(event.pointerId);
  ["pointerup", "pointercancel"].forEach((name) => stage.addEventListener(name, away));
  stage.addEventListener("click", (event) => onPoint(event, true));
  stage.addEventListener("pointerleave", () => onPoint(null, false));
  stage.addEventListener("dblclick", (event) => view.zoom(0.25, part(event)));
}
