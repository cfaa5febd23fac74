// Puts the page together: loads the runs, draws what is shown, and listens to whoever reads.

const byId = (id) => document.getElementById(id);

// As the system, light, dark, and round again.
function watchTheme(redraw) {
  const button = byId("theme");
  const names = { "": "as the system", light: "light", dark: "dark" };
  const next = { "": "light", light: "dark", dark: "" };
  button.addEventListener("click", () => {
    const theme = next[document.documentElement.dataset.theme || ""];
    if (theme) document.documentElement.dataset.theme = theme;
    else delete document.documentElement.dataset.theme;
    button.textContent = `Colours: ${names[theme]}`;
    redraw();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
}

// The colours that occur.
function writeLegend(runs) {
  const [seen, calls] = [new Map(), new Set()];
  for (const { model } of runs) {
    model.head.kinds.forEach((name, i) => seen.set(name, model.head.holds[i]));
    const does = new Set(model.op);
    OPERATIONS.forEach((name, i) => {
      if ([...does].some((op) => (op & 3) === i)) seen.set(name, false);
    });
    new Set(model.calls.what).forEach((what) => calls.add(model.head.callNames[what]));
  }
  const item = (words, colour, isHeld) => {
    const item = document.createElement("li");
    const patch = item.appendChild(document.createElement("span"));
    patch.className = isHeld ? "patch hatched" : "patch";
    patch.style.backgroundColor = colour || "#868e96";
    item.append(isHeld ? `withheld: ${words}` : words);
    return item;
  };
  const items = [...seen].map(([name, isHeld]) => item(nameOf(name), COLOURS[name], isHeld));
  items.push(...[...calls].map((name) => item(`call: ${name}`, callColour(name), false)));
  byId("legend").replaceChildren(...items);
}

// Says what is shown, when it has stopped moving.
function speaker(runs, view) {
  let timer = 0;
  const say = () => {
    const span = `${timeAt(view.from, view.span())} to ${timeAt(view.to, view.span())}`;
    const runsSay = runs.map(({ model }) => describe(model, view.from, view.to));
    byId("shown").textContent = `Shown: ${span}, ${timeSpan(view.span())}. ${runsSay.join(" ")}`;
    const details = byId("text");
    if (!details.open) return;
    const tables = runs.map(({ model }) => tableOf(model, view.from, view.to));
    details.replaceChildren(details.firstElementChild, ...tables);
  };
  byId("text").addEventListener("toggle", say);
  return () => {
    clearTimeout(timer);
    timer = setTimeout(say, 250);
  };
}

function listenToKeys(run, runs, view) {
  const tell = (words) => (byId("pointed").textContent = words || "There is no other one.");
  run.stage.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const direction = { n: 1, p: -1, "]": 1, "[": -1 }[event.key];
    if (KEYS[event.key]) KEYS[event.key](view, event);
    else if (event.key === "n" || event.key === "p") tell(run.stepHeld(direction, view));
    else if (event.key === "]" || event.key === "[") tell(run.step(direction, view));
    else if (event.key === "Escape") choose(runs, null, null, view);
    else return;
    event.preventDefault();
  });
}

function choose(runs, run, request, view) {
  runs.forEach((it) => {
    it.chosen = it === run ? request : null;
    it.chain = it.mark = null;
  });
  view.changed();
}

function listenToPointer(run, runs, view) {
  const tip = byId("tip");
  listen(run.stage, view, (event, isClick) => {
    const box = run.stage.getBoundingClientRect();
    const found = event && run.at(event.clientX - box.left, event.clientY - box.top);
    tip.hidden = !found;
    if (isClick) {
      choose(runs, run, found && found.request !== undefined ? found.request : null, view);
      byId("pointed").textContent = found ? found.words : "";
    }
    if (!found) return;
    tip.textContent = found.words;
    const left = Math.min(event.clientX + 14, window.innerWidth - tip.offsetWidth - 8);
    tip.style.left = `${Math.max(4, left)}px`;
    tip.style.top = `${event.clientY + 18}px`;
  });
}

// The buttons do what the keys do, for the first run.
function listenToButtons(runs, view) {
  document.querySelectorAll("#tools [data-key]").forEach((button) => {
    button.addEventListener("click", () => {
      const key = button.dataset.key;
      runs[0].stage.dispatchEvent(new KeyboardEvent("keydown", { key }));
    });
  });
}

// Which part of the whole is shown; a click goes elsewhere.
function watchWhere(view) {
  const bar = byId("where");
  bar.addEventListener("click", (event) => {
    const middle = (event.offsetX / bar.clientWidth) * view.end;
    view.show(middle - view.span() / 2, middle + view.span() / 2);
  });
  bar.firstElementChild.style.pointerEvents = "none";
  return () => {
    bar.firstElementChild.style.left = `${(100 * view.from) / view.end}%`;
    bar.firstElementChild.style.width = `${(100 * view.span()) / view.end}%`;
  };
}

// An address may end in #from=1.2&to=1.3, in seconds; with only=timeline nothing else is shown.
function showAsked(view) {
  const asked = new URLSearchParams(location.hash.slice(1));
  if (!asked.has("from")) return;
  view.show(Number(asked.get("from")) * 1e9, Number(asked.get("to")) * 1e9);
}

async function start() {
  const elements = [...document.querySelectorAll(".run")];
  const models = await Promise.all(elements.map((_, number) => loadModel(number)));
  const asked = new URLSearchParams(location.hash.slice(1));
  if (asked.get("only")) document.documentElement.dataset.only = asked.get("only");
  const runs = elements.map((element, number) => new Run(element, models[number]));
  const view = new View(Math.max(1, ...models.map(({ head }) => head.end * head.tick)));
  const say = runs.length ? speaker(runs, view) : () => {};
  const mark = runs.length ? watchWhere(view) : () => {};
  const draw = () => {
    runs.forEach((run) => run.draw(view));
    mark();
    say();
  };
  let isPrinted = false;
  // At once, for paper does not wait for the next frame.
  const redraw = () => {
    runs.forEach((run) => run.layOut());
    if (isPrinted) runs.forEach((run) => run.dress(true));
    drawCharts();
    draw();
  };
  view.listeners.push(draw);
  if (runs.length) writeLegend(runs);
  runs.forEach((run) => listenToKeys(run, runs, view));
  runs.forEach((run) => listenToPointer(run, runs, view));
  if (runs.length) listenToButtons(runs, view);
  listenToPlaces(runs, view);
  dressLayers();
  watchTheme(redraw);
  window.addEventListener("hashchange", () => showAsked(view));
  window.addEventListener("resize", redraw);
  const print = (begins) => {
    isPrinted = begins;
    runs.forEach((run) => run.dress(begins));
    draw();
  };
  window.addEventListener("beforeprint", () => print(true));
  window.addEventListener("afterprint", () => print(false));
  showAsked(view);
  drawCharts();
  draw();
  // For whoever measures the page, or drives it.
  window.paternoster = { view, runs, draw, ready: performance.now() };
  document.documentElement.dataset.ready = "yes";
}

start();
