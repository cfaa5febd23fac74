// Curves and distributions, drawn by uPlot.

const STROKES = ["#d9480f", "#1971c2", "#2b8a3e", "#9c36b5", "#868e96", "#c2255c", "#0c8599"];
const DASHES = [[], [6, 3], [2, 2], [8, 3, 2, 3]];

function drawCharts() {
  const data = JSON.parse(document.getElementById("charts").textContent);
  document.querySelectorAll("figure.chart").forEach((figure) => {
    const { chart, number } = figure.dataset;
    const isCurves = chart === "curves";
    const drawn = (isCurves ? curves : distributions)(data[chart][number]);
    const plot = figure.querySelector(".plot");
    plot.replaceChildren();
    new uPlot({ ...drawn.options, width: Math.max(260, plot.clientWidth) }, drawn.data, plot);
    figure.querySelector(".words").textContent = drawn.words;
  });
}

function ink() {
  return isDark() ? DARK : LIGHT;
}

function axis(label, more) {
  const { ink: stroke, grid } = ink();
  const lines = { stroke: grid, width: 1 };
  const font = `12px ${FONT}`;
  const common = { stroke, font, labelFont: font, labelSize: 18, grid: lines, ticks: lines };
  return { label, ...common, ...more };
}

function lines(series, unit) {
  return series.map(({ name }, i) => ({
    label: name,
    stroke: COLOURS[name] || STROKES[i % STROKES.length],
    dash: DASHES[i % DASHES.length],
    width: 1.5,
    points: { show: false },
    value: (_, value) => (Number.isFinite(value) ? `${round(value)} ${unit}` : "–"),
  }));
}

function round(value) {
  return value >= 100 ? value.toFixed(0) : value >= 1 ? value.toFixed(1) : value.toFixed(3);
}

function curves({ unit, step, series }) {
  const length = Math.max(...series.map((it) => it.values.length));
  const times = Array.from({ length }, (_, i) => (i + 0.5) * step);
  const words = series.map(({ name, values }) => {
    const mean = values.reduce((sum, it) => sum + it, 0) / values.length;
    return `${name}: mean ${round(mean)}, most ${round(Math.max(...values))} ${unit}.`;
  });
  const time = { label: "time", value: (_, at) => (at === null ? "–" : `${round(at)} s`) };
  const options = {
    height: 190,
    scales: { x: { time: false }, y: { range: (_, low, high) => [0, high * 1.05 || 1] } },
    axes: [axis("seconds"), axis(unit, { size: 64 })],
    series: [time, ...lines(series, unit)],
  };
  const filled = (values) => times.map((_, i) => values[i] ?? null);
  const data = [times, ...series.map((it) => filled(it.values))];
  return { options, data, words: words.join(" ") };
}

// The share of requests that take up to so long; times double from one value to the next.
function distributions({ of, series, medians }) {
  const length = Math.max(...series.map((it) => it.values.length));
  const first = Math.min(...series.map((it) => it.values.findIndex((value) => value > 0)));
  const start = Math.max(0, first - 1);
  const times = Array.from({ length: length - start }, (_, i) => 2 ** (i + start) / 1e3);
  const filled = (values) => times.map((_, i) => values[i + start] ?? 100);
  const words = series.map(
    ({ name }, at) => `${nameOf(name)}: half within ${timeSpan(medians[at])}.`,
  );
  const span = (micros) => timeSpan(micros * 1e3).replace(/\.0+ /, " ");
  const time = { label: "up to", value: (_, at) => (at === null ? "–" : span(at)) };
  const ticks = (_, values) => values.map((it) => (it === null ? "" : span(it)));
  const options = {
    height: 210,
    scales: { x: { time: false, distr: 3 }, y: { range: [0, 101] } },
    axes: [axis("time", { values: ticks }), axis(`% of ${of}`, { size: 52 })],
    series: [time, ...lines(series, "%")],
  };
  const data = [times, ...series.map((it) => filled(it.values))];
  return { options, data, words: words.join(" ") };
}
