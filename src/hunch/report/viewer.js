// The viewer of episodes: unpacks a run's block when it is chosen, and shows one step at a time.
"use strict";

const view = { run: null, block: null, listed: [], episode: 0, step: 0 };
const blocks = new Map();
let words = null;

// A block is JSON, an object or a list, or JSON deflated and in base64.
async function unpack(text) {
  if (text.startsWith("{") || text.startsWith("[")) return JSON.parse(text);
  if (typeof DecompressionStream === "undefined") {
    throw new Error("This browser cannot unpack the episodes: take one from 2023 or later, or make the report with --plain.");
  }
  const bytes = Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return JSON.parse(await new Response(stream).text());
}

function sums(lengths) {
  let total = 0;
  return lengths.map((length) => { total += length; return total - length; });
}

async function block(run) {
  words = words || await unpack(DATA.words);
  if (!blocks.has(run)) {
    const found = await unpack(DATA.blocks[run]), lengths = found.seen.map((i) => found.length[i]);
    found.firstAction = sums(found.length);
    found.firstAnswer = sums(lengths.map((length) => length + 1));
    found.firstOffer = sums(lengths);
    blocks.set(run, found);
  }
  return blocks.get(run);
}

// ---- choosing ----------------------------------------------------------------------------------------

function listRuns() {
  const { arms } = current();
  const groups = arms.map((arm) => el("optgroup", { label: arm.label },
    ...arm.runs.map((run) => el("option", { value: run }, `${arm.label}, seed ${DATA.runs[run].seed}`))));
  byId("run").replaceChildren(...groups);
  const best = arms.reduce((a, b) => ((b.final.success[0] ?? -1) > (a.final.success[0] ?? -1) ? b : a));
  byId("run").value = best.runs[0];
  chooseRun(best.runs[0]);
}

async function chooseRun(run) {
  view.run = run;
  try {
    const found = await block(run);
    if (view.run !== run) return;
    view.block = found;
    const explained = Object.keys(found.opinions).map(Number);
    const solved = explained.filter((i) => found.success[i]);
    listEpisodes([...solved, ...explained.slice(-1), found.step.length - 1].find((i, n) => n >= solved.length - 1 && i >= 0));
  } catch (error) {
    byId("stage-body").hidden = true;
    byId("stage-note").textContent = error.message;
  }
}

function listEpisodes(wanted) {
  const b = view.block, filter = byId("filter").value;
  const keep = { all: () => true, opinions: (i) => i in b.opinions, solved: (i) => b.success[i], unsolved: (i) => !b.success[i] }[filter];
  view.listed = b.step.map((_, i) => i).filter(keep);
  const wide = (text, n) => String(text).padStart(n, "\u00a0");
  const digits = Math.max(...b.step.map((step) => plain(step).length));
  byId("episode").replaceChildren(...view.listed.map((i) => el("option", { value: i },
    `${wide(i + 1, String(b.step.length).length)} step\u00a0${wide(plain(b.step[i]), digits)} ${wide(b.length[i], 3)}\u00a0acts ` +
    `${i >= b.training ? "eval\u00a0" : ""}${b.success[i] ? "solved" : "\u2013\u00a0\u00a0\u00a0\u00a0\u00a0"}${i in b.opinions ? "\u00a0\u25c6" : ""}`)));
  const n = Object.keys(b.opinions).length;
  byId("episode-note").textContent = `${many(view.listed.length, "episode")} of ${plain(b.step.length)}; number, step of the run at its end, ` +
    `actions, outcome. \u25c6: with opinions (${n}). ${b.whyNoOpinions ? `No opinions: ${b.whyNoOpinions}` : ""}`;
  if (view.listed.length) chooseEpisode(view.listed.includes(wanted) ? wanted : view.listed[0]);
  else say("No episode of this run is of that kind.");
}

function chooseEpisode(episode) {
  view.episode = episode;
  const list = byId("episode");
  list.value = episode;
  if (list.selectedOptions[0]) list.scrollTop = list.selectedOptions[0].offsetTop - list.clientHeight / 2;
  chooseStep(0);
}

function chooseStep(step) {
  const last = view.block.length[view.episode] - 1;
  view.step = Math.min(last, Math.max(0, step));
  showMoment();
}

// ---- showing -----------------------------------------------------------------------------------------

function say(text) {
  byId("stage-note").textContent = text;
  byId("stage-note").hidden = text === "";
  byId("stage-body").hidden = text !== "";
}

// What is known of an episode: its actions, and its texts where it was replayed.
function episodeOf(b, i) {
  const length = b.length[i], part = (column, from, n) => column.slice(from, from + n);
  const actions = part(b.actions, b.firstAction[i], length).map((id) => words.texts[id]);
  const at = b.seen.indexOf(i);
  if (at < 0) return { length, actions };
  return {
    length, actions,
    task: words.texts[b.task[at]],
    answers: part(b.answers, b.firstAnswer[at], length + 1).map((id) => words.texts[id]),
    pictures: part(b.pictures, b.firstAnswer[at], length + 1).map((id) => words.texts[id]),
    offers: part(b.offers, b.firstOffer[at], length).map((id) => words.offers[id].map((text) => words.texts[text])),
    rewards: part(b.rewards, b.firstOffer[at], length),
    opinions: b.opinions[i],
  };
}

function showMoment() {
  const b = view.block, episode = episodeOf(b, view.episode), step = view.step;
  say("");
  byId("task").textContent = episode.task || "not stated";
  byId("step-label").textContent = `Step ${step + 1} of ${episode.length}`;
  byId("step").max = episode.length;
  byId("step").value = step + 1;
  byId("step").setAttribute("aria-valuetext", `step ${step + 1} of ${episode.length}`);
  const first = step === 0, last = step === episode.length - 1;
  for (const [id, off] of [["to-first", first], ["to-previous", first], ["to-next", last], ["to-last", last]]) disable(byId(id), off);
  byId("moment").replaceChildren(...(episode.answers ? seenMoment(episode, step) : bareMoment(episode, step)));
}

// A button that has the focus keeps it, so that the keyboard is not thrown back to the top of the page.
function disable(button, off) {
  const focused = document.activeElement === button;
  button.disabled = off;
  if (off && focused) byId("stage").focus({ preventScroll: true });
}

function seenMoment(episode, step) {
  const opinion = episode.opinions && episode.opinions[step];
  const reward = episode.rewards[step], over = step === episode.length - 1;
  const outcome = `Reward ${plain(reward)}.` + (over ? ` The episode ends here: ${view.block.success[view.episode] ? "solved" : "not solved"}, return ${plain(view.block.return[view.episode])}.` : "");
  return [
    el("h3", {}, "The environment said"), ...thumbnail(episode, step), el("p", { class: "said" }, episode.answers[step]),
    el("h3", {}, opinion ? "Admissible actions, and what the agent thinks of them" : "Admissible actions; the agent was not asked about this episode"),
    actionTable(episode, step, opinion),
    el("h3", {}, `After \u201c${episode.actions[step]}\u201d it answered`), ...thumbnail(episode, step + 1), el("p", { class: "said after" }, episode.answers[step + 1]),
    el("p", { class: "outcome" }, outcome),
  ];
}

// The picture of a state, if it has one.
function thumbnail(episode, step) {
  return episode.pictures[step] ? [el("img", { src: episode.pictures[step], width: 160, alt: "The picture of this state" })] : [];
}

function bareMoment(episode, step) {
  const items = episode.actions.map((action, i) => el("li", i === step ? { "aria-current": "step" } : {}, i === step ? el("strong", {}, action) : action));
  const reason = view.block.reason ? `The texts of this run are not to be had: ${view.block.reason}` : "The texts of this episode were left out to keep the page small.";
  return [el("p", { class: "note" }, reason), el("h3", {}, "Actions taken"),
    el("ol", { class: "script", tabindex: 0, "aria-label": "Actions taken" }, ...items)];
}

function actionTable(episode, step, opinion) {
  const taken = episode.offers[step].indexOf(episode.actions[step]);
  const kinds = opinion ? Object.keys(opinion) : [];
  const look = (kind) => ["prior", "posterior"].includes(kind) ? kind : "q";
  const title = (kind) => kind[0].toUpperCase() + kind.slice(1);
  const heads = [el("th", { scope: "col" }, "action"), ...kinds.map((kind) => el("th", { scope: "col" }, el("i", { class: `bar-${look(kind)}` }), title(kind)))];
  const span = (kind) => look(kind) !== "q" ? [0, 1] : extent([0, ...(episode.opinions || []).flatMap((each) => each[kind] || [])]);
  const spans = Object.fromEntries(kinds.map((kind) => [kind, span(kind)]));
  const rows = episode.offers[step].map((action, i) => {
    const name = el("th", { scope: "row", class: "name" }, action);
    if (i === taken) name.append(el("span", { class: "sr" }, " (taken)"));
    const cells = kinds.map((kind) => el("td", {}, ...meter(opinion[kind][i], spans[kind], look(kind))));
    return el("tr", i === taken ? { class: "taken" } : {}, name, ...cells);
  });
  return el("table", { class: "actions" }, el("thead", {}, el("tr", {}, ...heads)), el("tbody", {}, ...rows));
}

// A number above a bar from zero.
function meter(value, [low, high], kind) {
  const places = kind === "q" ? 3 : 2;
  if (value === null) return [el("span", { class: "zero" }, "\u2013")];
  const share = scale(low, high, 0, 100), from = share(Math.min(0, value)), to = share(Math.max(0, value));
  const bar = el("i", { class: `bar-${kind}` });
  bar.style.left = `${from}%`;
  bar.style.width = `${to - from}%`;
  return [el("span", value === 0 ? { class: "zero" } : {}, fixed(value, places)), el("span", { class: "meter", "aria-hidden": "true" }, bar)];
}

// ---- hands -------------------------------------------------------------------------------------------

function byKey(event) {
  if (!view.block || event.altKey || event.ctrlKey || event.metaKey || event.target.matches("input, select, ol")) return;
  const along = { ArrowLeft: view.step - 1, ArrowRight: view.step + 1, Home: 0, End: Infinity }[event.key];
  const other = { ArrowUp: -1, ArrowDown: 1 }[event.key];
  if (along !== undefined) chooseStep(along);
  else if (other !== undefined) {
    const next = view.listed[view.listed.indexOf(view.episode) + other];
    if (next !== undefined) chooseEpisode(next);
  } else return;
  event.preventDefault();
}

function startViewer() {
  byId("run").addEventListener("change", (event) => chooseRun(+event.target.value));
  byId("filter").addEventListener("change", () => listEpisodes(view.episode));
  byId("episode").addEventListener("change", (event) => chooseEpisode(+event.target.value));
  byId("step").addEventListener("input", (event) => chooseStep(event.target.value - 1));
  const moves = { "to-first": () => 0, "to-previous": () => view.step - 1, "to-next": () => view.step + 1, "to-last": () => Infinity };
  for (const [id, to] of Object.entries(moves)) byId(id).addEventListener("click", () => chooseStep(to()));
  byId("stage").addEventListener("keydown", byKey);
}
