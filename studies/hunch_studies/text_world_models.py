"""Language models as world models: accuracy against examples, drift, calibration, and planning in them.

hunch study text-world-models
hunch study text-world-models --part write --lm smollm2 --lm qwen-coder-0.5b    # real models
python -m hunch_studies.text_world_models docs/assets/studies/text-world-models.json    # leads in its rows
python -m hunch_studies.text_world_models docs/assets/studies/text-world-models-written.jsonl
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np

from hunch import lm
from hunch.core import Player, State, UsageError
from hunch.envs.icpi.texts import Texts
from hunch.rl.episodes import evaluate, replay
from hunch.rl.small_models import tabulate, value_iteration
from hunch.rl.statistics import over_pairs, over_seeds
from hunch.rl.world_model import LookUp, Prediction, Step, WorldModel, alike, by_depth, measure, right
from hunch.roles.world_model.experience import Example, Experience, discounted_return
from hunch.roles.world_model.prompting import Completer, PromptConfig
from hunch.roles.world_model.text import InContextWorldModel
from hunch.runs.files import read_lines
from hunch.runs.foretell import Foretelling, Recording, in_context, recorded, text_steps, world_model
from hunch_studies.blind import Usual
from hunch_studies.code_world_models import three
from hunch_studies.lines import draw_lines
from hunch_studies.planners import table as table_of
from hunch_studies.study import Part, Scale, Study, by_name, kept, loaded

DOMAINS = ("Chain", "Maze")
EXAMPLES = (4, 8, 16, 32, 64)
"""Numbers of shown steps."""
DEPTH = 5
EPISODES = 20
"""Numbers of episodes to predict and to play."""
STILL = "nothing changes"
"""The control: the same state, no reward, no end."""
GUESSING = "look-up, else nothing changes"
"""The stronger control: what was shown, and for all else the same state."""
LINES = ("pocket", "scripted:icpi?error=0.1", "scripted:icpi?error=0.03", "look-up", STILL, GUESSING)
CONTROLS = ("look-up", STILL, GUESSING)
BESIDE = ("pocket", "look-up")
"""The models that are drawn and compared; they and the controls are run with each number of examples."""
FIGURES = ("right after one step", "return of planning")
"""The results that are drawn and compared in pairs."""
MOST = 200
"""Maximum number of states of a model for planning."""
DRAWS, SURE_AT = 4, 16
"""Predictions per step, and steps shown, for the calibration."""
ASKED = PromptConfig(prompts="per-episode")
"""One order of the examples for all questions, so that a model reads them only once."""


class Still:
    """Predicts that nothing changes."""

    def step(
        self, states: Sequence[Any], actions: Sequence[Any], rngs: Sequence[np.random.Generator]
    ) -> list[Prediction]:
        """Predict the same state."""
        return [Prediction(False, 0.0, state) for state in states]


class GuessingLookUp(LookUp):
    """Predicts the latest recorded result of the same step, and of others that nothing changes."""

    def step(
        self, states: Sequence[Any], actions: Sequence[Any], rngs: Sequence[np.random.Generator]
    ) -> list[Prediction]:
        """Look up the result of each step, or guess it."""
        recalled = super().step(states, actions, rngs)
        guessed = Still().step(states, actions, rngs)
        return [guess if one == Prediction() else one for one, guess in zip(recalled, guessed, strict=True)]


def run(domain: str, line: str, examples: int, seed: int) -> dict[str, Any]:
    """Return a model's accuracy by steps and on steps that were not shown, and the return of planning."""
    what = Foretelling(env=f"hunch/{domain}-v0", examples=examples, episodes=EPISODES, seed=seed)
    recording = recorded(what, {"hints": False})
    if line == STILL:
        return _measured(Still(), recording, seed)
    if line == GUESSING:
        return _measured(GuessingLookUp(text_steps(recording.shown)), recording, seed)
    with world_model(line, recording, ASKED) as (model, _, _):
        return _measured(model, recording, seed)


def _measured(model: WorldModel, recording: Recording, seed: int) -> dict[str, Any]:
    held = [text_steps(episode) for episode in recording.held]
    known = {(step.state, step.action) for step in text_steps(recording.shown)}
    new = [[step] for episode in held for step in episode if (step.state, step.action) not in known]
    quality = measure(model, held, depth=DEPTH, seed=seed)
    return {
        "depth": [None if np.isnan(share) else float(share) for share in quality.by_depth],
        "new": float(by_depth(model, new, 1, seed)[0]) if new else None,
        "speed": quality.steps_per_second,
        "return": planned(model, recording, seed),
    }


class Plan(Player):
    """Plays the best action in a model, and at random in unknown states.

    Args:
        best: The best action of each state that the model knows.
        seed: Seed of random actions.
    """

    def __init__(self, best: dict[str, str], seed: int) -> None:
        self.best, self.rng = best, np.random.default_rng(seed)

    def act(self, states: Sequence[State]) -> list[str]:
        """Return the best action of each state."""
        drawn = [str(self.rng.choice(state.options)) for state in states]
        return [self.best.get(s.observation, other) for s, other in zip(states, drawn, strict=True)]

    def observe(self, transitions: Sequence[Any]) -> None:
        """Do nothing: it has no memory."""


def planned(model: WorldModel | None, recording: Recording, seed: int) -> float:
    """Return the mean discounted true return of planning in a model; None is random play."""
    gamma = recording.texts.log_gamma if recording.texts else 1.0
    best = solved(model, recording, gamma) if model else {}
    played = evaluate(lambda own: Plan(best, own), [recording.env], EPISODES, seed)
    rewards = [[t.reward for t in replay(recording.env, e)] for e in played]
    return float(np.mean([discounted_return(own, gamma) for own in rewards]))


def solved(model: WorldModel, recording: Recording, gamma: float) -> dict[str, str]:
    """Return the best action of each first state of the episodes to predict, and of the states after it.

    It uses value iteration in the model, which predicts each step once; the result is empty if there are too
    many states.
    """
    texts = recording.texts
    assert texts is not None
    starts = [episode[0].state.observation for episode in recording.held]
    actions = tuple(texts.actions)
    rng = np.random.default_rng(0)
    try:
        table = tabulate(model, starts, lambda state: actions, rng, most=MOST)
    except UsageError:
        return {}
    q = value_iteration(table, gamma)
    told = [bool(row.max() > row.min()) for row in q]
    return {
        state: actions[int(row.argmax())]
        for state, row, sure in zip(table.states, q, told, strict=True)
        if sure
    }


def _cells(rows: Sequence[dict[str, Any]], key: str, at: int | None = None) -> str:
    values = [row[key] if at is None else row[key][at] for row in rows]
    known = [value for value in values if value is not None]
    return three(over_seeds(known)) if known else ""


def table(domain: str, seeds: int, examples: Sequence[int], folder: Path) -> str:
    """Return accuracy, drift and return of each model by number of examples, and a picture of accuracy."""
    keys = [
        (line, n, seed)
        for line in LINES
        for n in (examples if line in (BESIDE[0], *CONTROLS) else examples[-1:])
        for seed in range(seeds)
    ]
    rows = kept(folder / "runs.jsonl", keys, partial(run, domain))
    columns = "model, steps shown, right after 1, of new pairs, after 2, after 3, after 5, return"
    lines = [f"| {' | '.join(columns.split(', '))} |", "|---" * 8 + "|"]
    for line in LINES:
        for n in examples:
            if own := _rows(rows, line, n):
                cells = [_cells(own, "depth", 0), _cells(own, "new")]
                cells += [_cells(own, "depth", d - 1) for d in (2, 3, 5)] + [_cells(own, "return")]
                lines.append(f"| {line} | {n} | {' | '.join(cells)} |")
    panels = {
        f"{domain}: {what}": {
            line: {n: over_seeds([_figure(row, what) for row in _rows(rows, line, n)]) for n in examples}
            for line in BESIDE
        }
        for what in FIGURES
    }
    draw_lines(panels, folder / "examples.png", "steps shown", "")
    ahead = [_ahead(rows, what, examples, other) for other in CONTROLS for what in FIGURES]
    notes = [_by_reward(domain, rows, examples), "", *ahead, *_bounds(domain, seeds, folder)]
    return "\n".join([*lines, "", *notes, "", f"![{domain}]({folder.name}/examples.png)"])


def _rows(rows: Sequence[dict[str, Any]], line: str, n: int) -> list[dict[str, Any]]:
    return [row for row in rows if row["key"][:2] == [line, n]]


def _figure(row: dict[str, Any], what: str) -> float:
    return float(row["return"] if what == FIGURES[1] else row["depth"][0])


def _by_reward(domain: str, rows: Sequence[dict[str, Any]], examples: Sequence[int]) -> str:
    """Return the mean return of planning on seeds with a reward among the steps shown, and on the others."""
    lines = ["| steps shown | arm | return with a reward among them | with none |", "|---" * 4 + "|"]
    for n in examples:
        for line in BESIDE:
            by: dict[bool, list[float]] = {True: [], False: []}
            for row in _rows(rows, line, n):
                by[_rewarded(domain, n, row["key"][2])].append(row["return"])
            cells = [f"{np.mean(own):.3f} ({len(own)} seeds)" if own else "" for own in by.values()]
            lines.append(f"| {n} | {line} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _rewarded(domain: str, examples: int, seed: int) -> bool:
    what = Foretelling(env=f"hunch/{domain}-v0", examples=examples, episodes=1, seed=seed)
    return any(t.reward > 0 for t in recorded(what, {"hints": False}).shown)


def _ahead(rows: Sequence[dict[str, Any]], what: str, examples: Sequence[int], other: str) -> str:
    """Return the lead of the pocket model over another, on the same seeds."""
    told = []
    for n in examples:
        by = [{r["key"][2]: _figure(r, what) for r in _rows(rows, line, n)} for line in (BESIDE[0], other)]
        told.append(f"{three(over_pairs([by[0][seed] - by[1][seed] for seed in by[0]]))} at {n}")
    return f"- `pocket` less {other} on the same seed, {what}: {', '.join(told)}."


def _bounds(domain: str, seeds: int, folder: Path) -> list[str]:
    """Return the returns of random play, and of planning with the true rules."""
    keys = [(line, seed) for line in ("random", "rules") for seed in range(seeds)]
    rows = kept(folder / "bounds.jsonl", keys, partial(_bound, domain))
    random, rules = ([row["return"] for row in rows if row["key"][0] == line] for line in ("random", "rules"))
    told = f"Return of random play {three(over_seeds(random))}, of planning in the rules"
    return [f"- {told} {three(over_seeds(rules))}."]


def _bound(domain: str, line: str, seed: int) -> dict[str, Any]:
    what = Foretelling(env=f"hunch/{domain}-v0", examples=0, episodes=EPISODES, seed=seed)
    recording = recorded(what, {"hints": False})
    return {"return": planned(_Rules(recording) if line == "rules" else None, recording, seed)}


class _Rules:
    """The environment itself, with texts as states."""

    def __init__(self, recording: Recording) -> None:
        self.env: Any = recording.env.unwrapped
        self.raw: dict[str, Any] = {
            t.state.observation: t.state.raw for episode in recording.held for t in episode
        }

    def step(
        self, states: Sequence[Any], actions: Sequence[Any], rngs: Sequence[np.random.Generator]
    ) -> list[Prediction]:
        return [self._step(*pair) for pair in zip(states, actions, strict=True)]

    def _step(self, state: str, action: str) -> Prediction:
        self.env.place(self.raw[state])
        text, reward, done, _, info = self.env.step(action)
        self.raw[text] = info["raw"]
        return Prediction(done, reward, text)


def calibration_table(seeds: int, domains: Sequence[str], folder: Path) -> str:
    """Return confidence, accuracy and calibration of models that are asked several times."""
    lines = [
        "| domain | model | right | confidence | calibration error | steps per second |",
        "|---" * 6 + "|",
    ]
    for domain in domains:
        asked = LINES[:3]
        keys = [(line, seed) for line in asked for seed in range(min(seeds, 3))]
        rows = kept(folder / f"{domain}.jsonl", keys, partial(_calibrated, domain))
        for line in asked:
            own = [row for row in rows if row["key"][0] == line]
            cells = [_cells(own, key) for key in ("right", "confidence", "calibration")]
            speed = np.median([row["speed"] for row in own])
            lines.append(f"| {domain} | {line} | {' | '.join(cells)} | {speed:,.0f} |")
    return "\n".join(lines)


def _calibrated(domain: str, line: str, seed: int) -> dict[str, Any]:
    what = Foretelling(env=f"hunch/{domain}-v0", examples=SURE_AT, episodes=6, seed=seed)
    recording = recorded(what, {"hints": False})
    with world_model(line, recording, PromptConfig(temperature=1.0)) as (model, _, _):
        held: list[list[Step]] = [text_steps(episode) for episode in recording.held]
        quality = measure(model, held, depth=1, draws=DRAWS, seed=seed)
    return {
        "right": float(quality.by_depth[0]),
        "confidence": quality.confidence,
        "calibration": quality.calibration_error,
        "speed": quality.steps_per_second,
    }


# ---- real models that write --------------------------------------------------------------------------------

BLANK: Final = "blank prompt"
USUAL: Final = "an action's usual change"
"""The strongest control: what was shown, and for all else what the action did most often."""
SHOWN: Final = 16
"""Number of shown steps of the real models."""
ANSWERED: Final = PromptConfig(prompts="per-episode", temperature=0.0, resamples=1, max_tokens=32)
"""How real models, and the small one beside them, are asked: once, for the most likely line."""
SMALL: Final = "pocket"
WRITTEN: Final = "models that write"


class UsualChange:
    """Predicts a shown step, and else what the action did most often; see :class:`hunch_studies.blind.Usual`.

    Args:
        steps: The steps that were shown.
    """

    def __init__(self, steps: Sequence[Step]) -> None:
        self.usual = Usual(steps)

    def step(
        self, states: Sequence[Any], actions: Sequence[Any], rngs: Sequence[np.random.Generator]
    ) -> list[Prediction]:
        """Look up the result of each step, or guess it."""
        results = [self.usual(state, action) for state, action in zip(states, actions, strict=True)]
        return [Prediction(done, reward, None if done else state) for done, reward, state in results]


def elsewhere(model: lm.LanguageModel, recording: Recording, other: Recording) -> InContextWorldModel:
    """Return the blank prompt: the same questions, with all steps of another domain as the examples.

    They show the form of an answer and nothing about the domain. How its states are written stands in the
    question.

    Args:
        model: The model.
        recording: Steps of the domain; those that were shown are not used.
        other: Steps of the other domain.
    """
    own, foreign = recording.texts, other.texts
    assert own is not None
    assert foreign is not None
    # The examples keep their own domain's words for actions, of which both domains use the names.
    named = {f"elsewhere {name}": text for name, text in foreign.actions.items()}
    mixed: Texts = type("Mixed", (type(own),), {"actions": {**own.actions, **named}})()
    steps = [step._replace(action=f"elsewhere {step.action}") for step in text_steps(other.shown)]
    experience = Experience()
    experience.add([Example._make(step) for step in steps], True)
    unconstrained = replace(ANSWERED, action_constraint=False)
    return InContextWorldModel(Completer(model, unconstrained), experience, mixed)


def _named(
    models: Mapping[str, str], label: str, domain: str, examples: int, seed: int
) -> tuple[WorldModel, Recording]:
    """Return the world model of a label, and what it has to predict."""

    def of(domain: str) -> Recording:
        what = Foretelling(env=f"hunch/{domain}-v0", examples=examples, episodes=EPISODES, seed=seed)
        return recorded(what, {"hints": False})

    recording = of(domain)
    shown = text_steps(recording.shown)
    rules: dict[str, WorldModel] = {
        STILL: Still(),
        GUESSING: GuessingLookUp(shown),
        USUAL: UsualChange(shown),
    }
    name = label.removesuffix(f", {BLANK}")
    if label in rules:
        return rules[label], recording
    if label != name:
        (other,) = (of(each) for each in DOMAINS if each != domain)
        return elsewhere(loaded(models[name]), recording, other), recording
    return in_context(loaded(models.get(name, name)), recording, ANSWERED), recording


def predicted(models: Mapping[str, str], domain: str, label: str, examples: int, seed: int) -> dict[str, Any]:
    """Return how well a world model predicts.

    Args:
        models: Specs of the language models by label.
        domain: One of :data:`DOMAINS`.
        label: A model, a model with its blank prompt, or a control.
        examples: Number of steps shown.
        seed: Seed of the steps.

    Returns:
        ``depth``, the shares right after 1, 2, ... steps in the model; ``new``, the share of steps whose
        state and action were not shown; ``parts``, the shares with the right end, reward and next state;
        and ``failed``, the share without a readable end, reward or next state.
    """
    model, recording = _named(models, label, domain, examples, seed)
    held = [text_steps(episode) for episode in recording.held]
    steps = [step for episode in held for step in episode]
    known = {(step.state, step.action) for step in text_steps(recording.shown)}
    new = np.array([(step.state, step.action) not in known for step in steps])
    rngs = [np.random.default_rng([seed, i]) for i in range(len(steps))]
    predictions = model.step([step.state for step in steps], [step.action for step in steps], rngs)
    asked = list(zip(predictions, steps, strict=True))
    hits = np.array([right(one, step) for one, step in asked])
    parts = [
        [one.done is step.done for one, step in asked],
        [one.reward is not None and alike(one.reward, step.reward) for one, step in asked],
        [one.next_state == step.next_state for one, step in asked if not step.done],
    ]
    read = [None not in (one.done, one.reward) and (one.done or one.next_state) for one in predictions]
    row = {
        "depth": [None if np.isnan(x) else float(x) for x in by_depth(model, held, DEPTH, seed)],
        "new": float(hits[new].mean()) if new.any() else None,
        "parts": [float(np.mean(part)) for part in parts],
        "failed": 1 - float(np.mean([bool(one) for one in read])),
    }
    return row


def written_table(rows: Sequence[dict[str, Any]]) -> str:
    """Return how well real models and controls predict, and the models' leads on the same seeds."""
    by_key = {tuple(row["key"]): row for row in rows}
    groups = dict.fromkeys(tuple(row["key"][:3]) for row in rows)
    told, leads = [], []
    controls = (STILL, GUESSING, USUAL)
    for domain, label, examples in groups:
        own = {key[3]: row for key, row in by_key.items() if key[:3] == (domain, label, examples)}
        several = list(own.values())
        cells = [_cells(several, "depth", 0), _cells(several, "new")]
        cells += [_cells(several, "depth", d - 1) for d in (3, 5)]
        cells += [f"{np.mean([row['parts'][part] for row in several]):.2f}" for part in range(3)]
        cells += [f"{np.mean([row['failed'] for row in several]):.2f}"]
        told.append((domain, examples, label, len(several), *cells))
        if label in controls or label.endswith(BLANK):
            continue
        for name, at in (("right after 1", ("depth", 0)), ("of new pairs", ("new", None))):
            over = []
            for other in (*controls, SMALL, f"{label}, {BLANK}"):
                pairs = [(row, by_key.get((domain, other, examples, seed))) for seed, row in own.items()]
                values = [
                    (_value(row, *at), _value(base, *at)) for row, base in pairs if base and other != label
                ]
                both = [a - b for a, b in values if a is not None and b is not None]
                over.append(over_pairs(both).short() if len(both) > 1 else "")
            leads.append((domain, examples, label, name, *over))
    head = "domain | steps shown | model | seeds | right after 1 | of new pairs | after 3 | after 5"
    head += " | end | reward | next state | unread"
    over_head = " | ".join(f"over {other}" for other in (*controls, SMALL, "its blank prompt"))
    lead_head = f"domain | steps shown | model | share | {over_head}"
    return f"{table_of(head, told)}\n\n{table_of(lead_head, leads)}"


def _value(row: Mapping[str, Any], key: str, at: int | None) -> float | None:
    value = row[key] if at is None else row[key][at]
    return None if value is None else float(value)


def _written(domain: str, models: Mapping[str, str], seeds: int, folder: Path) -> str:
    keys = [
        (domain, label, SHOWN, seed) for label in (STILL, GUESSING, USUAL, SMALL) for seed in range(seeds)
    ]
    for model in models:
        arms = (model, f"{model}, {BLANK}")
        keys += [(domain, label, SHOWN, seed) for seed in range(seeds) for label in arms]
    return written_table(kept(folder / "rows.jsonl", keys, partial(predicted, models)))


def _parts(scale: Scale, data: Path) -> list[Part]:
    domains = DOMAINS[:1] if scale.smoke else DOMAINS
    written = by_name(scale.lms)
    examples = EXAMPLES[::2] if scale.smoke else EXAMPLES
    return [
        *(Part(domain, (), beside=partial(table, domain, scale.seeds, examples)) for domain in domains),
        Part("Calibration", (), beside=partial(calibration_table, scale.seeds, domains)),
        *(
            Part(f"{domain}, {WRITTEN}", (), beside=partial(_written, domain, written, scale.seeds))
            for domain in domains
            if written
        ),
    ]


STUDIES = {
    "text-world-models": Study(
        "text-world-models",
        "How good a world model is a language model that is shown examples, and is planning in it possible?",
        "No published table is repeated here. Brooks et al. (NeurIPS 2023) plan by rollouts in "
        "code-davinci-002; the survey warns that language models seldom work as world models without "
        "suitable pretraining.",
        "`pocket` is our own small model (L1). `scripted:icpi` predicts by the rules; each of its three "
        "answers per step is wrong with the stated rate (L0). States have no hints. Examples are from "
        "random play, and in one order for all questions except those of the calibration.",
        _parts,
        lm_for="icpi",
        seeds=5,
    )
}


def main() -> None:
    """Print the leads over each control in recorded rows, or the results of real models."""
    parser = argparse.ArgumentParser(description="Leads of the models over each control.")
    parser.add_argument("rows", type=Path)
    file: Path = parser.parse_args().rows
    if file.suffix == ".jsonl":
        print(written_table(read_lines(file)))
        return
    recorded_rows = json.loads(file.read_text(encoding="utf-8"))
    for domain in DOMAINS:
        rows = recorded_rows[domain.lower()]
        leads = [_ahead(rows, what, EXAMPLES, other) for what in FIGURES for other in CONTROLS]
        print("\n".join([domain, *leads]))


if __name__ == "__main__":
    main()
