// Charts: lines with bands over seeds, and dots with intervals. SVG, drawn from numbers computed in Python.
"use strict";

const SVG = "http://www.w3.org/2000/svg";
const DASHES = ["", "9 4", "3 4"]; // a curve that lies on another shows it through its gaps

function svg(tag, attributes, ...children) {
  const node = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes || {})) node.setAttribute(name, value);
  node.append(...children);
  return node;
}

function stroke(index) {
  const n = DATA.colours.length;
  const colour = index % n === n - 1 ? "var(--series-7)" : DATA.colours[index % n];
  return { stroke: colour, "stroke-dasharray": DASHES[(index + Math.floor(index / n)) % DASHES.length] };
}

function swatch(index) {
  const line = svg("line", { x1: 0, x2: 28, y1: 6, y2: 6, "stroke-width": 3, ...stroke(index) });
  return svg("svg", { class: "swatch", viewBox: "0 0 28 12", "aria-hidden": "true" }, line);
}

// About n round values from low to high.
function ticks(low, high, n) {
  const span = high - low || 1;
  const size = 10 ** Math.floor(Math.log10(span / n));
  const step = [1, 2, 5, 10].map((factor) => factor * size).find((s) => span / s <= n) || span;
  const found = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + span * 1e-9; i++) found.push(+(i * step).toPrecision(12));
  return found;
}

function scale(from, to, start, end) {
  return (value) => start + ((value - from) / (to - from || 1)) * (end - start);
}

function extent(numbers) {
  const known = numbers.filter((value) => value !== null);
  return known.length ? [Math.min(...known), Math.max(...known)] : [0, 1];
}

// The range of a score: a share goes from 0 to 1, a return over what there is.
function scoreRange(y, numbers) {
  if (y === "success") return [0, 1];
  const [low, high] = extent([...numbers, 0]);
  return low === high ? [low, low + 1] : [low, high];
}

/* Draws curves into a place and returns { at(share), from(clientX) }: move the cursor to a share of the x axis,
   and the share that a pointer is at. */
function lineChart(place, { curves, x, y, xTitle, yTitle, label, xLeast }) {
  const width = Math.max(260, place.clientWidth), height = Math.round(Math.min(400, Math.max(260, width * 0.48)));
  const left = width < 500 ? 44 : 52, right = width - 12, top = 26, bottom = height - 44;
  const drawn = curves.filter((curve) => curve.points);
  const xEnd = Math.max(xLeast, ...drawn.flatMap(({ points }) => points.x.slice(-1)));
  const [yLow, yHigh] = scoreRange(y, drawn.flatMap(({ points }) => [...points.value, ...points.low, ...points.high]));
  const px = scale(0, xEnd, left, right), py = scale(yLow, yHigh, bottom, top);
  const root = svg("svg", { role: "img", "aria-label": label, width, height, viewBox: `0 0 ${width} ${height}` });
  for (const value of ticks(yLow, yHigh, 5)) {
    root.append(svg("line", { class: "grid", x1: left, x2: right, y1: py(value), y2: py(value) }),
      svg("text", { x: left - 8, y: py(value) + 4, "text-anchor": "end" }, plain(value)));
  }
  for (const value of ticks(0, xEnd, width < 500 ? 3 : 7)) {
    root.append(svg("line", { class: "axis", x1: px(value), x2: px(value), y1: bottom, y2: bottom + 5 }),
      svg("text", { x: px(value), y: bottom + 19, "text-anchor": "middle" }, plain(value)));
  }
  root.append(svg("line", { class: "axis", x1: left, x2: right, y1: bottom, y2: bottom }),
    svg("text", { x: right, y: height - 6, "text-anchor": "end" }, xTitle),
    svg("text", { x: 0, y: 8 }, yTitle));
  for (const { points, index } of drawn) root.append(band(points, index, px, py));
  for (const { points, index } of drawn) {
    const path = points.x.map((value, i) => `${px(value).toFixed(1)},${py(points.value[i]).toFixed(1)}`).join("L");
    root.append(svg("path", { d: `M${path}`, fill: "none", "stroke-width": 2, "stroke-linejoin": "round", "data-arm": index, ...stroke(index) }));
    if (points.x.length === 1) root.append(svg("circle", { cx: px(points.x[0]), cy: py(points.value[0]), r: 3, fill: stroke(index).stroke }));
  }
  const cursor = svg("line", { class: "cursor", x1: right, x2: right, y1: top, y2: bottom });
  root.append(cursor);
  place.replaceChildren(root);
  return {
    xEnd,
    at(share) {
      const position = left + share * (right - left);
      cursor.setAttribute("x1", position);
      cursor.setAttribute("x2", position);
    },
    from(clientX) {
      const box = root.getBoundingClientRect();
      return Math.min(1, Math.max(0, (clientX - box.left - left) / (right - left)));
    },
  };
}

function band(points, index, px, py) {
  const known = points.x.map((_, i) => i).filter((i) => points.low[i] !== null);
  const side = (values, order) => order.map((i) => `${px(points.x[i]).toFixed(1)},${py(values[i]).toFixed(1)}`);
  const outline = [...side(points.high, known), ...side(points.low, [...known].reverse())];
  return svg("path", { d: outline.length ? `M${outline.join("L")}Z` : "", fill: stroke(index).stroke, opacity: 0.16 });
}

// The value of a curve at x: [value, low, high]; null before it begins. After its end it keeps its last value.
function readCurve(points, x) {
  if (!points || x < points.x[0] - 1e-9) return null;
  let i = points.x.findIndex((value) => value > x);
  i = i < 0 ? points.x.length - 1 : i - 1;
  return [points.value[i], points.low[i], points.high[i]];
}

// A dot with its interval on a common axis; one svg a row of the table of scores.
function interval([value, low, high], range, index) {
  const px = scale(...range, 4, 196), known = value !== null;
  const root = svg("svg", { viewBox: "0 0 200 18", width: "100%", height: 18, "aria-hidden": "true", preserveAspectRatio: "none" });
  for (const tick of ticks(...range, 4)) root.append(svg("line", { class: "grid", x1: px(tick), x2: px(tick), y1: 0, y2: 18, "vector-effect": "non-scaling-stroke" }));
  const solid = { stroke: stroke(index).stroke, "vector-effect": "non-scaling-stroke", "stroke-linecap": "round" };
  if (low !== null) root.append(svg("line", { x1: px(low), x2: px(high), y1: 9, y2: 9, "stroke-width": 3, ...solid }));
  if (known) root.append(svg("line", { x1: px(value), x2: px(value), y1: 9, y2: 9.01, "stroke-width": 10, ...solid }));
  return root;
}
