// Draws each chart from the table of its numbers, which stands below it for whoever cannot see it.
"use strict";

// Told apart by more than colour: in grey, and by eyes that take red for green.
const DASHES = { candidate: [8, 4], control: [2, 3], most: [8, 4], none: [12, 3, 2, 3], pinned: [5, 5] };

function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

function numbersOf(cells) {
  return cells.map((cell) => ("value" in cell.dataset ? Number(cell.dataset.value) : null));
}

function said(value) {
  return (Number.isInteger(value) ? value : Number(value.toPrecision(3))).toLocaleString("en", { maximumFractionDigits: 6 });
}

function twoDigits(number) {
  return String(number).padStart(2, "0");
}

function named(seconds, withTime) {
  const at = new Date(seconds * 1000);
  const day = `${twoDigits(at.getUTCMonth() + 1)}-${twoDigits(at.getUTCDate())}`;
  const time = `${twoDigits(at.getUTCHours())}:${twoDigits(at.getUTCMinutes())}`;
  return withTime ? `${day} ${time}` : day;
}

function seriesOf(head) {
  const { kind, color } = head.dataset;
  const stroke = colour(`chart-${color}`);
  if (kind === "bars") {
    const paths = uPlot.paths.bars({ size: [0.8, 40] });
    return { label: head.textContent, stroke, fill: stroke, width: 0, paths, points: { show: false } };
  }
  if (kind === "line") {
    const points = { show: true, size: 5, fill: stroke };
    return { label: head.textContent, stroke, width: 2, dash: DASHES[color], points, spanGaps: false };
  }
  return { label: head.textContent, stroke: "transparent", points: { show: false }, class: "bound" };
}

function bandsOf(heads) {
  const bands = [];
  heads.forEach((head, place) => {
    if (head.dataset.kind !== "low") return;
    bands.push({ series: [place + 2, place + 1], fill: `${colour(`chart-${head.dataset.color}`)}33` });
  });
  return bands;
}

function newest(chart) {
  if (chart.cursor.idx == null) chart.setLegend({ idx: chart.data[0].length - 1 });
}

function draw(plot) {
  const table = document.getElementById(plot.dataset.chart);
  const rows = [...table.tBodies[0].rows];
  const heads = [...table.tHead.rows[0].cells].slice(1).filter((head) => head.dataset.kind !== "none");
  const columns = [...table.tHead.rows[0].cells].map((head, place) => [head, place]).slice(1);
  const shown = columns.filter(([head]) => head.dataset.kind !== "none");
  const times = rows.map((row) => Number(row.cells[0].dataset.at));
  const data = [times, ...shown.map(([, place]) => numbersOf(rows.map((row) => row.cells[place])))];
  const byDay = times.length > 1 && times[1] - times[0] >= 86400;
  const ink = colour("quiet"), line = colour("line");
  const axis = { stroke: ink, grid: { stroke: line, width: 1 }, ticks: { stroke: line, width: 1 }, font: "12px system-ui, sans-serif" };
  const top = plot.dataset.top ? Number(plot.dataset.top) : null;
  const step = times.length > 1 ? times[1] - times[0] : 3600;
  const options = {
    width: plot.clientWidth,
    height: 190,
    ms: 1e-3,
    tzDate: (at) => uPlot.tzDate(new Date(at * 1000), "Etc/UTC"),
    scales: {
      x: { range: [times[0] - step / 2, times[times.length - 1] + step / 2] },
      y: { range: (_, low, high) => [0, top ?? (high > 0 ? high * 1.08 : 1)] },
    },
    axes: [
      { ...axis, space: 70, values: (_, splits) => splits.map((at) => named(at, !byDay && splits[1] - splits[0] < 86400)) },
      { ...axis, size: 56, values: (_, splits) => splits.map((value) => said(value)) },
    ],
    series: [
      { label: "From", value: (_, at) => (at === null ? "" : named(at, true)) },
      ...shown.map(([head]) => ({
        ...seriesOf(head),
        value: (_, value) => (value == null ? "" : said(value)),
      })),
    ],
    bands: bandsOf(heads),
    cursor: { drag: { x: false, y: false }, y: false },
    legend: { markers: { width: 3, fill: "transparent" } },
    // Without a pointer over it, the legend shows the newest step.
    hooks: { ready: [newest], setCursor: [newest] },
  };
  plot.replaceChildren();
  return new uPlot(options, data, plot);
}

for (const plot of document.querySelectorAll("[data-chart]")) {
  plot.hidden = false;
  let chart = draw(plot);
  new ResizeObserver(() => chart.setSize({ width: plot.clientWidth, height: 190 })).observe(plot);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { chart.destroy(); chart = draw(plot); });
}
