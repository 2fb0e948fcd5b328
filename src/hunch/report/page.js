// The page: reads the one JSON that Python wrote, and fills in charts and tables. No text becomes markup.
"use strict";

const DATA = JSON.parse(document.getElementById("data").textContent);
const shown = { comparison: 0, x: "steps", y: "success", smooth: 0, order: "compared", reading: 1, hidden: new Set() };
const sorting = {}; // of each table that can be sorted: its column, and whether the largest is first
const byId = (id) => document.getElementById(id);

function el(tag, attributes, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value);
  }
  node.append(...children);
  return node;
}

// ---- numbers as text ---------------------------------------------------------------------------------

function plain(value) {
  if (value === null || value === undefined) return "\u2013";
  const [whole, part] = String(Math.abs(value)).split(".");
  const grouped = whole.includes("e") ? whole : whole.replace(/\B(?=(\d{3})+$)/g, ",");
  return (value < 0 ? "\u2212" : "") + grouped + (part ? `.${part}` : "");
}

function fixed(value, places = 2) {
  if (value === null || value === undefined) return "\u2013";
  return (value < 0 ? "\u2212" : "") + Math.abs(value).toFixed(places);
}

function estimate([value, low, high]) {
  const text = low === null ? "" : `[${fixed(low)}, ${fixed(high)}]`;
  return [fixed(value), el("span", { class: "interval" }, text)];
}

const named = (index, label) => el("span", { class: "arm" }, swatch(index), label);
const many = (n, word) => `${plain(n)} ${word}${n === 1 ? "" : "s"}`;
const range = (low, high) => (low === high ? plain(low) : `${plain(low)} to ${plain(high)}`);

// ---- tables ------------------------------------------------------------------------------------------

// A cell as what it is sorted by: its number, which may be followed by an interval, or else its text.
function sortValue(content) {
  const text = [content].flat().map((part) => part.textContent ?? String(part)).join(" ").trim();
  const number = parseFloat(text.replaceAll(",", "").replace("\u2212", "-"));
  return Number.isNaN(number) ? text : number;
}

// Numbers before texts, which have no size among them, such as "never".
function bySize(a, b) {
  if (typeof a === typeof b) return typeof a === "number" ? a - b : a.localeCompare(b);
  return typeof a === "number" ? -1 : 1;
}

function sorted(rows, key) {
  const { column, descending } = sorting[key] || {};
  if (column === undefined) return rows;
  const values = new Map(rows.map((cells) => [cells, sortValue(cells[column])]));
  const isNumber = (cells) => typeof values.get(cells) === "number";
  return [...rows].sort((a, b) => (descending && isNumber(a) === isNumber(b) ? -1 : 1) * bySize(values.get(a), values.get(b)));
}

// A head that sorts: ascending, descending, and as it was.
function sorter(content, i, key, redraw) {
  const { column, descending } = sorting[key] || {};
  const next = column !== i ? { column: i, descending: false } : descending ? {} : { column: i, descending: true };
  const mark = column !== i ? "" : descending ? " \u25be" : " \u25b4";
  const press = () => {
    sorting[key] = next;
    redraw();
    document.querySelector(`[data-sort="${key} ${i}"]`)?.focus();
  };
  return el("button", { type: "button", class: "sort", "data-sort": `${key} ${i}`, title: "Sort by this column", onclick: press }, ...[content].flat(), mark);
}

// Rows of cells; a cell is text, a node or a list of these, and columns in `figures` are aligned as numbers. With a
// `key`, its heads sort the rows, and `redraw` draws it again.
function table(heads, rows, { figures = [], caption, name = "", key, redraw } = {}) {
  if (key) {
    rows = sorted(rows, key);
    heads = heads.map((content, i) => (typeof content === "string" ? sorter(content, i, key, redraw) : content));
  }
  const cell = (content, i, head) => {
    const node = el(head ? "th" : "td", figures.includes(i) ? { class: "figure" } : {});
    if (head) node.setAttribute("scope", head);
    if (head === "col" && key && sorting[key]?.column === i) node.setAttribute("aria-sort", sorting[key].descending ? "descending" : "ascending");
    node.append(...[content].flat());
    return node;
  };
  const line = (cells, first) => el("tr", {}, ...cells.map((content, i) => cell(content, i, i ? "" : first)));
  const top = el("tr", {}, ...heads.map((content, i) => cell(content, i, "col")));
  const parts = [el("thead", {}, top), el("tbody", {}, ...rows.map((cells) => line(cells, "row")))];
  if (caption) parts.unshift(el("caption", { class: "sr" }, caption));
  return el("table", { class: name }, ...parts);
}

// What the brackets of an arm hold: below five seeds the interval says less than it seems to.
const spread = (seeds) => (seeds > 1 && seeds < 5 ? "range" : "95 %");
const spreads = () => [...new Set(current().arms.map((arm) => spread(arm.seeds)))].join(" or ");
const current = () => DATA.comparisons[shown.comparison];

// The arms with their place in the comparison, which their colour goes by, in the order that the reader chose.
function ordered() {
  const places = current().arms.map((arm, index) => ({ arm, index }));
  const score = ({ arm }) => arm.final[scored()][0] ?? -Infinity;
  if (shown.order === "score") places.sort((a, b) => score(b) - score(a));
  if (shown.order === "name") places.sort((a, b) => a.arm.label.localeCompare(b.arm.label));
  return places;
}

// ---- sections ----------------------------------------------------------------------------------------

function radios(place, name, titles) {
  const choices = Object.entries(titles).map(([value, title]) => {
    const input = el("input", { type: "radio", name, value, onchange: () => { shown[name] = value; showScores(); } });
    input.checked = shown[name] === value;
    return el("label", { title }, input, value === "calls" ? "model calls" : value.replaceAll("_", " "));
  });
  byId(place).replaceChildren(...choices);
}

function showLead() {
  const { arms, steps } = current();
  const seeds = arms.map((arm) => arm.seeds), runs = seeds.reduce((sum, n) => sum + n, 0);
  const { score } = current(), end = (arm) => arm.final[score][0] ?? -Infinity;
  const best = arms.reduce((a, b) => (end(b) > end(a) ? b : a));
  const [value, low, high] = best.final[score];
  const over = best.seeds > 1 ? "seeds" : "the episodes of one run";
  const interval = low === null ? "no interval" : `${spread(best.seeds) === "range" ? "range" : "95 % interval"} ${fixed(low)} to ${fixed(high)} over ${over}`;
  byId("title").textContent = current().title;
  byId("lead").textContent = `${many(runs, "run")}: ${many(arms.length, "arm")}, ${range(Math.min(...seeds), Math.max(...seeds))} ` +
    `seed${Math.max(...seeds) > 1 ? "s" : ""} each, ${plain(steps)} ${current().unit} per run. ` +
    (value === null ? "No episode ended in the last quarter of the steps."
      : `${score === "best" ? "Best program" : "Highest success at the end"}: ${best.label}, ${fixed(value)} (${interval}; evidence ${best.evidence}).`);
}

const unitOf = (x) => x === "steps" ? current().unit : DATA.x[x];

let chart = null;

function showCurves() {
  const { arms } = current(), { x, y } = shown;
  const curves = arms.map((arm, index) => ({ index, points: curveOf(arm) })).filter(({ index }) => !shown.hidden.has(index));
  const label = `${titleOf(y)}, over ${unitOf(x)}; the values are in the table below`;
  chart = lineChart(byId("chart"), { curves, x, y, xTitle: unitOf(x), yTitle: titleOf(y), label, xLeast: x === "steps" ? current().steps : 1e-9 });
  const kept = x === "steps" ? "" : x === "episode" ? " Within a lifetime: means over the last evaluation, or the last quarter of the steps." : " Seeds differ in what they need: a run that ended keeps its last value." +
    (["calls", "tokens"].includes(x) ? " Answers from the cache cost nothing, so a later seed may need few; requests count them." : "");
  const empty = curves.length && !curves.some(({ points }) => points) ? "There is no curve yet. " : "";
  const smooth = shown.smooth ? `Smoothed: each point is the mean over ${shown.smooth} % of the axis around it. ` : "";
  byId("curves-note").textContent = `${empty}${smooth}Curve: interquartile mean over seeds; band: its 95 % bootstrap interval, below five seeds their range. A curve begins once ten episodes have ended in every seed.${kept}`;
  showReading();
}

// The curve of an arm, smoothed as the reader chose. Its points lie at equal distances.
function curveOf(arm) {
  const points = arm.curves[`${shown.x} ${shown.y}`];
  if (!points || !shown.smooth || points.x.length < 3) return points;
  const half = Math.max(1, Math.round((points.x.length * shown.smooth) / 200));
  const mean = (values) => values.map((value, i) => {
    const near = values.slice(Math.max(0, i - half), i + half + 1).filter((each) => each !== null);
    return value === null ? null : near.reduce((sum, each) => sum + each, 0) / near.length;
  });
  return { x: points.x, value: mean(points.value), low: mean(points.low), high: mean(points.high) };
}

function showReading() {
  const at = shown.reading * chart.xEnd;
  chart.at(shown.reading);
  byId("reading").value = shown.reading * 100;
  const text = `${plain(at < 10 ? +at.toPrecision(2) : Math.round(at))} ${unitOf(shown.x)}`;
  byId("reading-at").textContent = text;
  byId("reading").setAttribute("aria-valuetext", text);
  const heads = ["arm", `${shown.y} [${spreads()}]`, "seeds", "model", "evidence"];
  const focused = document.activeElement && document.activeElement.dataset.arm;
  byId("legend").replaceChildren(table(heads, ordered().map(({ arm, index }) => {
    const box = el("input", { type: "checkbox", "data-arm": index, onchange: () => toggle(index) });
    box.checked = !shown.hidden.has(index);
    const value = readCurve(curveOf(arm), at);
    return [el("label", { class: "arm" }, box, swatch(index), arm.label), value ? estimate(value) : "\u2013", plain(arm.seeds), arm.model, arm.evidence];
  }), { figures: [1, 2], caption: "Legend and values", key: "legend", redraw: showReading }));
  if (focused !== undefined) byId("legend").querySelector(`[data-arm="${focused}"]`)?.focus();
}

function toggle(index) {
  if (!shown.hidden.delete(index)) shown.hidden.add(index);
  showCurves();
}

// What a method logs of its own has no title but its name, and no score at the end.
const titleOf = (y) => (shown.x !== "episode" && DATA.y[y]) || (y === current().score && SCORES[y]) || y.replaceAll("_", " ");
const scored = () => (shown.y in current().beats ? shown.y : current().score);
const SCORES = { success: "Success rate", return: "Mean return", best: "Fitness of the best program" };

function showFinal() {
  const { arms } = current(), y = scored();
  const span = scoreRange(y, arms.flatMap((arm) => arm.final[y]));
  const axis = el("span", { class: "ends" }, el("span", {}, plain(span[0])), el("span", {}, plain(span[1])));
  byId("final-title").textContent = SCORES[y];
  const rows = ordered().map(({ arm, index }) => [named(index, arm.label), interval(arm.final[y], span, index), estimate(arm.final[y])]);
  const drawn = table(["arm", axis, `value [${spreads()}]`], rows, { figures: [2], name: "final" });
  byId("final").replaceChildren(drawn);
}

function showBeats() {
  const { arms, beats } = current(), letter = (i) => String.fromCharCode(65 + (i % 26)) + (i < 26 ? "" : Math.floor(i / 26));
  const cells = beats[scored()];
  const rows = cells.map((row, i) => [
    [el("b", {}, letter(i)), ` ${arms[i].label}`],
    ...row.map((found) => (found === null ? "" : [found[0], el("small", {}, found[1])])),
  ]);
  const drawn = table([el("span", { class: "sr" }, "arm"), ...arms.map((_, i) => letter(i))], rows, { name: "matrix" });
  cells.forEach((row, i) => row.forEach((found, j) => {
    const side = found?.[0] === "shown" ? "above" : cells[j][i]?.[0] === "shown" ? "below" : "";
    if (side) drawn.tBodies[0].rows[i].cells[j + 1].style.background = `rgba(var(--${side}), 0.3)`;
  }));
  byId("beats").replaceChildren(drawn);
  byId("beats").closest("figure").hidden = arms.length < 2; // one arm has nothing to compare with
}

function showVerdict() {
  const { verdict } = current();
  byId("verdict-part").hidden = verdict.length === 0;
  byId("verdict").replaceChildren(...verdict.map((line) => el("li", {}, line)));
}

function showScores() {
  showCurves();
  showFinal();
  showBeats();
}

function showCosts() {
  const { arms } = current();
  const costs = [...new Set(arms.flatMap((arm) => Object.keys(arm.costs)))];
  const rows = ordered().map(({ arm, index }) => [
    named(index, arm.label), arm.model, arm.evidence, plain(arm.seeds),
    arm.stepsToHalf === null ? "never" : plain(arm.stepsToHalf), ...costs.map((name) => plain(arm.costs[name])),
  ]);
  const heads = ["arm", "model", "evidence", "seeds", "half at", ...costs];
  byId("costs").replaceChildren(table(heads, rows, { figures: heads.map((_, i) => i).slice(3), key: "costs", redraw: showCosts }));
}

function showSettings() {
  const { arms, settings, versions } = current();
  const value = (found) => (found === null ? "\u2013" : Array.isArray(found) ? found.join(", ") : String(found));
  const wide = (label, content) => el("div", { class: "wide", role: "region", tabindex: 0, "aria-label": label }, content);
  const side = (label, rows) => wide(label, table(["setting", ...arms.map((arm) => arm.label)], rows.map(([name, ...values]) => [name, ...values.map(value)])));
  const lacking = settings.lacking.length ? [el("details", {}, el("summary", {}, "Settings that only some arms have"), side("Settings that only some arms have", settings.lacking))] : [];
  const full = arms.map((arm) => el("details", {}, el("summary", {}, `All settings of ${arm.label}`),
    el("pre", { tabindex: 0, role: "region", "aria-label": `All settings of ${arm.label}` }, JSON.stringify(arm.settings, null, 2))));
  const asked = arms.filter((arm) => arm.said.length).map((arm) => el("details", {}, el("summary", {}, `How the models of ${arm.label} were asked, and what they said first`),
    el("ul", {}, ...arm.said.map((text) => el("li", {}, text)))));
  const models = arms.map((arm) => [arm.label, arm.model, arm.revision]);
  byId("settings").replaceChildren(
    el("p", { class: "note" }, settings.differing.length ? "Only what differs between arms; \u2013 where an arm has no such setting." : arms.length < 2 ? "" : "The arms do not differ in any setting that they share."),
    ...(settings.differing.length ? [side("Settings that differ", settings.differing)] : []), ...lacking, ...asked, ...full,
    el("details", {}, el("summary", {}, "Versions and model revisions"),
      wide("Model revisions", table(["arm", "model", "revision"], models)), wide("Versions", table(["package", "version"], versions))));
}

function showLeftOut() {
  byId("left").hidden = DATA.leftOut.length === 0;
  byId("left-out").replaceChildren(table(["folder", "reason"], DATA.leftOut));
}

// ---- downloads ---------------------------------------------------------------------------------------

function save(name, type, text) {
  const url = URL.createObjectURL(new Blob([text], { type }));
  el("a", { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 1000);
}

// The chart as it is shown, with its styles written into it: a file of its own has no style sheet.
function chartText() {
  const drawn = byId("chart").querySelector("svg"), copy = drawn.cloneNode(true);
  const names = ["stroke", "stroke-width", "stroke-dasharray", "fill", "font-family", "font-size", "opacity"];
  const copies = copy.querySelectorAll("*");
  drawn.querySelectorAll("*").forEach((node, i) => {
    const style = getComputedStyle(node);
    copies[i].setAttribute("style", names.map((name) => `${name}:${style.getPropertyValue(name)}`).join(";"));
  });
  copy.setAttribute("xmlns", SVG);
  copy.setAttribute("style", `background:${getComputedStyle(document.body).backgroundColor}`);
  return new XMLSerializer().serializeToString(copy);
}

// A text of others as a cell: with an apostrophe if a spreadsheet would take it for a formula, as in cells.py.
function textCell(text) {
  const isFormula = /^\s*[=+\-@\uff1d\uff0b\uff0d\uff20]./s.test(text) && Number.isNaN(Number(text));
  return `"${isFormula ? "'" : ""}${String(text).replaceAll('"', '""')}"`;
}

function curvesText() {
  const rows = [["arm", shown.x, shown.y, "low", "high"].map(textCell)];
  for (const arm of current().arms) {
    const points = curveOf(arm);
    if (points) points.x.forEach((x, i) => rows.push([textCell(arm.label), x, points.value[i], points.low[i] ?? "", points.high[i] ?? ""]));
  }
  return rows.map((row) => row.join(",")).join("\n") + "\n";
}

function showComparison() {
  // A search for programs is judged by its best program, everything else by its success.
  if (current().score === "best" || (!(shown.y in DATA.y) && !current().more.includes(shown.y))) shown.y = current().score;
  radios("y-choice", "y", { ...DATA.y, ...Object.fromEntries(current().more.map((name) => [name, titleOf(name)])) });
  shown.hidden.clear();
  showLead();
  showScores();
  showVerdict();
  showCosts();
  showSettings();
  listRuns();
  listKept();
}

function start() {
  radios("x-choice", "x", DATA.x);
  byId("smooth").addEventListener("change", (event) => { shown.smooth = +event.target.value; showCurves(); });
  byId("order").addEventListener("change", (event) => { shown.order = event.target.value; showScores(); showCosts(); });
  const choice = byId("comparison");
  choice.append(...DATA.comparisons.map(({ title }, i) => el("option", { value: i }, title)));
  choice.addEventListener("change", () => { shown.comparison = +choice.value; showComparison(); });
  byId("choice").hidden = DATA.comparisons.length < 2;
  byId("reading").addEventListener("input", (event) => { shown.reading = event.target.value / 100; showReading(); });
  byId("chart").addEventListener("pointermove", (event) => { shown.reading = chart.from(event.clientX); showReading(); });
  let width = window.innerWidth;
  window.addEventListener("resize", () => { if (window.innerWidth !== width) { width = window.innerWidth; showCurves(); drawFamily(); } });
  byId("save-picture").addEventListener("click", () => save("curves.svg", "image/svg+xml", chartText()));
  byId("save-values").addEventListener("click", () => save("curves.csv", "text/csv", curvesText()));
  startViewer();
  startKept();
  showLeftOut();
  showComparison();
}

document.addEventListener("DOMContentLoaded", start);
