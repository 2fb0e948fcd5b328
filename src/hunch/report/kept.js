// What agents kept: programs as a family tree with differences, and transcripts, one entry at a time.
"use strict";

const keeping = { run: null, entries: [], listed: [], at: 0 };
const isProgram = (entry) => "number" in entry;
const failed = (entry) => entry.fitness === null;

function listKept() {
  const { arms } = current(), having = (arm) => arm.runs.filter((run) => DATA.kept[run]);
  const groups = arms.filter((arm) => having(arm).length).map((arm) => el("optgroup", { label: arm.label },
    ...having(arm).map((run) => el("option", { value: run }, `${arm.label}, seed ${DATA.runs[run].seed}`))));
  byId("kept").hidden = groups.length === 0;
  if (!groups.length) return;
  byId("kept-run").replaceChildren(...groups);
  chooseKept(+byId("kept-run").value);
}

async function chooseKept(run) {
  keeping.run = run;
  try {
    const entries = await unpack(DATA.kept[run]);
    if (keeping.run === run) showKept(entries);
  } catch (error) {
    byId("kept-body").replaceChildren(el("p", { class: "note" }, error.message));
  }
}

function showKept(entries) {
  keeping.entries = entries;
  const programs = entries.some(isProgram);
  byId("kept-about").textContent = programs
    ? "Every program that was tried, with its difference to the program from which it was written. In the picture a line joins both; the best program and its ancestors are strong, programs that failed are at the foot."
    : "What the agent wrote down, line by line, such as the transcript of each plan.";
  const kinds = programs ? { all: "all programs", best: "the best and its ancestors", worked: "that ran", failed: "that failed" } : { all: "all" };
  byId("kept-filter").replaceChildren(...Object.entries(kinds).map(([value, text]) => el("option", { value }, text)));
  showImprovements();
  listEntries(entries.findLastIndex((entry) => entry.best));
}

function listEntries(wanted) {
  const keep = { all: () => true, best: (e) => e.best, worked: (e) => !failed(e), failed }[byId("kept-filter").value];
  keeping.listed = keeping.entries.map((_, i) => i).filter((i) => keep(keeping.entries[i]));
  byId("kept-line").replaceChildren(...keeping.listed.map((i) => el("option", { value: i }, entryTitle(keeping.entries[i], i))));
  byId("kept-note").textContent = `${keeping.listed.length} of ${many(keeping.entries.length, "entry").replace("entrys", "entries")}.`;
  byId("family").hidden = !keeping.entries.some(isProgram);
  if (!keeping.listed.length) byId("kept-body").replaceChildren(el("p", { class: "note" }, "There is none of that kind."));
  else chooseEntry(keeping.listed.includes(wanted) ? wanted : keeping.listed[0]);
}

// Programs that were better than all before them, with their gain over the program from which they were written, or
// over the best so far where there is none, and the lines that changed.
function showImprovements() {
  const programs = keeping.entries.filter(isProgram), of = new Map(programs.map((entry) => [entry.number, entry]));
  let best = null;
  const better = programs.filter((entry) => {
    if (failed(entry) || (best !== null && entry.fitness <= best)) return false;
    entry.before = best;
    best = entry.fitness;
    return true;
  });
  const place = byId("improvements");
  place.hidden = better.length < 2;
  place.querySelector("summary").textContent = `${many(better.length - 1, "improvement")}, with what each changed`;
  place.querySelector("div").replaceChildren(...better.slice(1).flatMap((entry) => improvementParts(entry, of.get(entry.parent))));
}

function improvementParts(entry, mother) {
  const gain = (value) => `${value > 0 ? "+" : ""}${plain(+value.toPrecision(4))}`;
  const over = !mother ? "written from nothing" : failed(mother) ? `from program ${mother.number}, which failed` : `from program ${mother.number} (${gain(entry.fitness - mother.fitness)})`;
  const head = el("h4", {}, `Program ${entry.number}, ${over}: fitness ${plain(entry.fitness)}, ${gain(entry.fitness - entry.before)} over the best before`);
  const changed = mother && entry.code ? entry.code.filter(([mark]) => mark !== " ") : [];
  if (!changed.length) return [head];
  const lines = changed.map(([mark, text]) => el("span", { class: mark === "+" ? "new" : "gone" }, `${mark} ${text}\n`));
  return [head, el("pre", { tabindex: 0, role: "region", "aria-label": `Lines that program ${entry.number} changed` }, el("code", { class: "program" }, ...lines))];
}

function entryTitle(entry, i) {
  if (!isProgram(entry)) return `${i + 1} ${entry.title}`;
  return `program ${entry.number}  ${failed(entry) ? "failed" : plain(entry.fitness)}${entry.best ? " \u25c6" : ""}`;
}

function chooseEntry(i) {
  keeping.at = i;
  byId("kept-line").value = i;
  drawFamily();
  const entry = keeping.entries[i];
  byId("kept-body").replaceChildren(...(isProgram(entry) ? programParts(entry) : []), ...fieldParts(entry));
}

function programParts(entry) {
  const from = entry.parent === null ? "written from nothing" : `written from program ${entry.parent}`;
  const worth = failed(entry) ? "it failed" : `fitness ${plain(entry.fitness)}`;
  const head = el("h3", {}, `Program ${entry.number}, ${from}: ${worth}`);
  if (!entry.code) return [head, el("p", { class: "note" }, "Its text was left out to keep the page small; the run\u2019s programs.jsonl has it.")];
  const said = { "+": "new: ", "-": "gone: ", " ": "" };
  const lines = entry.code.map(([mark, text]) => el("span", { class: { "+": "new", "-": "gone", " ": "same" }[mark] },
    el("span", { class: "sr" }, said[mark]), `${entry.parent === null ? "" : `${mark} `}${text}\n`));
  return [head, el("pre", { tabindex: 0, role: "region", "aria-label": `Text of program ${entry.number}` }, el("code", { class: "program" }, ...lines))];
}

// Lists that go together, such as a plan and what came of each part, are columns of one table; short values are lines of another.
function fieldParts(entry) {
  if (!entry.fields) return isProgram(entry) ? [] : [el("p", { class: "note" }, "This line was left out to keep the page small; the run\u2019s records.jsonl has it.")];
  const named = (name) => name.replaceAll("_", " "), isList = ([, value]) => Array.isArray(value);
  const lists = entry.fields.filter((field) => isList(field) && field[1].length), rest = entry.fields.filter((field) => !isList(field));
  const short = rest.filter(([, value]) => value.length < 80 && !value.includes("\n")), long = rest.filter((field) => !short.includes(field));
  const columns = lists.reduce((found, field) => found.set(field[1].length, [...(found.get(field[1].length) || []), field]), new Map());
  return [
    ...(short.length ? [table(["what", "value"], short.map(([name, value]) => [named(name), value || "\u2013"]))] : []),
    ...[...columns].map(([length, fields]) => table(["", ...fields.map(([name]) => named(name))],
      Array.from({ length }, (_, i) => [`${i + 1}`, ...fields.map(([, value]) => value[i])]))),
    ...long.flatMap(([name, value]) => [el("h3", {}, named(name)), el("p", { class: "said" }, value)]),
  ];
}

// ---- the family tree -----------------------------------------------------------------------------------

// Where the axis of fitness begins: far outliers, such as programs that do nothing, would press the others into a line.
function lowest(fitness, least, high) {
  const quarter = [...fitness].sort((a, b) => a - b)[Math.floor(fitness.length / 4)] ?? least;
  return quarter < high && quarter - least > 3 * (high - quarter) ? quarter - (high - quarter) : least;
}

// A line through the values that are known; null ends a piece of it.
function polyline(values, px, py) {
  let pen = "M";
  return values.map((value, i) => {
    if (value === null) { pen = "M"; return ""; }
    const point = `${pen}${px(i).toFixed(1)},${py(value).toFixed(1)}`;
    pen = "L";
    return point;
  }).join("");
}

// The band of best of n: at program m the best of m draws. Where its lower end is that all fail, it begins at the foot.
function chanceParts(chance, px, py) {
  const known = chance.high.map((_, i) => i).filter((i) => chance.high[i] !== null);
  const foot = Math.min(...chance.high.filter((value) => value !== null), ...chance.low.filter((value) => value !== null));
  const at = (value, i) => `${px(i).toFixed(1)},${py(value ?? foot).toFixed(1)}`;
  const outline = [...known.map((i) => at(chance.high[i], i)), ...[...known].reverse().map((i) => at(chance.low[i], i))];
  return [svg("path", { class: "chance", d: `M${outline.join("L")}Z` }), svg("path", { class: "chance-middle", d: polyline(chance.middle, px, py) })];
}

function drawFamily() {
  const programs = keeping.entries.filter(isProgram);
  if (!programs.length) return;
  const place = byId("family"), width = Math.max(260, place.clientWidth), height = 220, left = 52, right = width - 12, top = 16, foot = height - 26;
  const chance = DATA.chance[keeping.run], among = chance ? [...chance.low, ...chance.high] : [];
  const [least, high] = extent([...programs.map((entry) => entry.fitness), ...among]);
  const low = lowest(programs.filter((entry) => !failed(entry)).map((entry) => entry.fitness), least, high);
  const px = scale(0, Math.max(1, programs.length - 1), left, right), linear = scale(low, high === low ? low + 1 : high, foot - 22, top), py = (value) => linear(Math.max(low, value));
  const spots = new Map(programs.map((entry, i) => [entry.number, [px(i), failed(entry) ? foot : py(entry.fitness)]]));
  const under = chance ? chanceParts(chance, px, py) : [];
  byId("family-note").textContent = chance ? `Green: the best of as many programs written without parents, drawn from ${chance.own ? "those of this run" : "the arm that writes afresh"} (${plain(chance.draws)}): median, and 95 % of the draws. Grey: the best of this run so far. A search pays where grey is above green.`
    : "No band of best of n: it needs eight programs that were written without parents, in this run or in an arm with --feedback fresh.";
  let best = null;
  const soFar = programs.map((entry) => {
    if (!failed(entry)) best = best === null ? entry.fitness : Math.max(best, entry.fitness);
    return best;
  });
  under.push(svg("path", { class: "so-far", d: polyline(soFar, px, py) }));
  const own = keeping.entries[keeping.at];
  const joined = programs.filter((entry) => spots.has(entry.parent)).map((entry) => {
    const [[x1, y1], [x2, y2]] = [spots.get(entry.parent), spots.get(entry.number)];
    return svg("line", { x1, y1, x2, y2, class: entry.best ? "strong" : "weak" });
  });
  const dots = programs.map((entry) => {
    const [cx, cy] = spots.get(entry.number);
    const dot = svg("circle", { cx, cy, r: entry === own ? 6 : entry.best ? 4 : 3, class: entry === own ? "own" : failed(entry) ? "failed" : entry.best ? "strong" : "weak" });
    dot.addEventListener("click", () => { byId("kept-filter").value = "all"; listEntries(keeping.entries.indexOf(entry)); });
    dot.append(svg("title", {}, entryTitle(entry)));
    return dot;
  });
  const axis = [...new Set([low, high])].map((value) => svg("text", { x: left - 8, y: py(value) + 4, "text-anchor": "end" }, `${value === low && least < low ? "\u2264 " : ""}${plain(+value.toPrecision(4))}`));
  const words = [svg("text", { x: left - 8, y: foot + 4, "text-anchor": "end" }, "failed"), svg("text", { x: right, y: height - 4, "text-anchor": "end" }, "programs in the order in which they were tried")];
  const label = `Family tree of ${programs.length} programs by fitness; the list beside it has every one of them`;
  place.replaceChildren(svg("svg", { role: "img", "aria-label": label, width, height, viewBox: `0 0 ${width} ${height}` }, ...axis, ...words, ...under, ...joined, ...dots));
}

function startKept() {
  byId("kept-run").addEventListener("change", (event) => chooseKept(+event.target.value));
  byId("kept-filter").addEventListener("change", () => listEntries(keeping.at));
  byId("kept-line").addEventListener("change", (event) => chooseEntry(+event.target.value));
}
