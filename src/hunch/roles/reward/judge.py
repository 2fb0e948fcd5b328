"""A judge as a reward source: a model says at the end of an episode whether it met the user's objective.

Source: Kwon et al., "Reward Design with Language Models", ICLR 2023.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, ClassVar, Final, Literal

from hunch.core import HunchWarning, Transition, World
from hunch.lm import DecisionQuestion, choose, decide
from hunch.lm.answers.lines import spoken
from hunch.lm.answers.reading import read_option
from hunch.lm.asking import AskConfig, Asking, listed
from hunch.lm.base import LanguageModel
from hunch.lm.prompts import Prompt
from hunch.lm.ways import JUDGED, Way, way_for
from hunch.ranges import NonNegativeFloat, PositiveInt
from hunch.roles.reward.rewarded import RewardSource

ANSWERS: Final = ("Yes", "No")
JudgeWay = Literal["auto", "decision", "structured", "label", "likelihood", "text"]
JUDGING: Final[tuple[Way, ...]] = ("decision", "structured", "label", "likelihood", "text")
"""The ways of asking a judge."""
KINDS: Final = ("yes", "no", "abstained")
ALIKE: Final = 50
"""Number of equal rewards after which a warning says that the judge is uninformative."""
_BOTH: Final = re.compile(r"\b(?:yes (?:or|and) no|yes/no)\b", re.IGNORECASE)
_VERDICT: Final = re.compile(
    r"\b(yes|no(?! (?:doubts?|questions?|idea|clue|problem|worries|objections?)\b))\b", re.IGNORECASE
)
"""A yes or no; not the "no" of a phrase that says something else."""


@dataclass(frozen=True, kw_only=True)
class JudgeConfig(AskConfig):
    """Settings of the questions to a judge about an episode."""

    renamed: ClassVar[Mapping[str, str]] = {"how": "way"}

    objective: str | None = None
    """The user's objective, with examples if there are any. Default: the environment's task. If empty, the
    prompt has no objective, like the paper's blank prompt."""
    question: str = "Does this outcome satisfy the objective?"
    """The question at the end of the prompt, answered with Yes or No."""
    way: JudgeWay = "auto"
    """Way of asking: a written answer whose first yes or no is read (text, paper) or one restricted to these
    (structured); or the probability of Yes, of a decision model (decision), as the next word (label) or as a
    text (likelihood). auto takes the model's best, a probability before a verdict."""
    temperature: NonNegativeFloat = 0.0
    """Temperature of written answers (released code); above 0 an equal episode is judged anew each time."""
    max_tokens: PositiveInt | None = None
    """Maximum tokens of a written answer (released code: 256, for answers with an explanation). Default: 16,
    or more for a chat model."""

    @classmethod
    def current(cls, stored: Mapping[str, Any]) -> dict[str, Any]:
        """Return stored settings of earlier versions by today's names."""
        values = dict(stored)
        if "how" in values:
            values["way"] = {"answer": "text", "score": "likelihood"}[values.pop("how")]
        return values


class Judge(RewardSource):
    """Rewards the end of an episode with 1 if a model says that it satisfies the objective, else with 0.

    All episodes that end in the same step are judged in one call. An answer without yes or no is an
    abstention: its reward is 0, and the model's fallbacks count it. If all rewards are equal, there is
    a warning. Probabilities of Yes that differ are informative even if all of them are below one half.

    Args:
        lm: A model that writes, decides, scores or labels.
        config: How the model is asked.

    Raises:
        UsageError: if the model does not support this form of answer.
    """

    ends_only: ClassVar[bool] = True
    saved: ClassVar[tuple[str, ...]] = ("accounts", "asked", "verdicts", "since", "rewarded", "warned")
    wording: ClassVar[str] = "735fe95e"
    """Version of the words of :meth:`prompt`. Change it with them: runs with different words are different
    runs."""

    def __init__(self, lm: LanguageModel, config: JudgeConfig | None = None) -> None:
        self.config = config or JudgeConfig()
        self.way: Way = way_for(
            lm, self.config.way, JUDGING, role="judge", needed_by="A judge", served=JUDGED
        )
        self.lm, self.models = lm, {"judge": lm}
        top_p = 0.7 if self.config.temperature == 0 else 1.0
        self._asking = Asking(lm, self.config, tokens=16, top_p=top_p, stop=(), role="judge")

    @property
    def settings(self) -> dict[str, Any]:
        """The config, and the name of the model."""
        return {**asdict(self.config), "judge": self.lm.name, "wording": self.wording}

    def begin(self, world: World, seed: int) -> None:
        """Forget all episodes in progress."""
        self.accounts: dict[int, list[str]] = {}  # by stream
        self.asked: dict[Prompt, int] = {}  # number of requests per prompt, if answers are sampled
        self.verdicts = {"yes": 0, "no": 0, "abstained": 0, "agrees": 0}
        self.since = dict(self.verdicts)
        self.rewarded: dict[float, int] = {}  # number of episodes by reward, until two rewards differ
        self.warned = False

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore a state; older ones do not say which rewards there were."""
        super().load_state_dict({"rewarded": {}, "warned": False, **state})

    def rewards(self, transitions: Sequence[Transition]) -> list[float]:
        """Return the verdict on each episode that ends with a transition, and 0 for all other steps."""
        # The account of each episode goes on; where one ends, a question about it is due.
        ends: list[int] = []  # indices of the transitions that end an episode
        questions: list[Prompt] = []
        for i, t in enumerate(transitions):
            account = self.accounts.setdefault(t.stream, [t.state.observation])
            account += self.words(t)
            if t.done:
                ends.append(i)
                questions.append(self.question(t.state.task, self.accounts.pop(t.stream)))

        # r = 1 for yes, 0 for no and for an abstention; a probability where the model states one
        rewards = [0.0] * len(transitions)
        for i, verdict in zip(ends, self.judged(questions), strict=True):
            if verdict is None:
                continue
            rewards[i] = verdict
            if (verdict >= 0.5) == transitions[i].success:
                self.verdicts["agrees"] += 1
        return rewards

    def abandon(self, stream: int) -> None:
        """Forget the episode of a stream, which was reset before its end, so it is never judged."""
        self.accounts.pop(stream, None)

    @staticmethod
    def words(t: Transition) -> list[str]:
        """Return the lines that describe a step in the account of an episode."""
        return [f"> {t.action}", t.event or t.next_state.observation]

    def question(self, task: str, account: Sequence[str]) -> Prompt:
        """Return the prompt about an episode: the built-in one, or that of a prompt file."""
        objective = task if self.config.objective is None else self.config.objective
        return self._asking.prompt(
            self.prompt(task, account),
            task=objective,
            history="\n".join(account[:-1]),
            observation=account[-1],
            actions=listed(ANSWERS),
        )

    def prompt(self, task: str, account: Sequence[str]) -> str:
        """Return the built-in prompt: situation and outcome, objective, question."""
        objective = task if self.config.objective is None else self.config.objective
        parts = [
            "\n".join(account),
            f"The objective: {objective}." if objective else "",
        ]
        if self.way == "decision":  # its question and the answers go apart
            return "\n\n".join(filter(None, parts))
        parts.append(self.config.question)
        listed = "\n".join(f"- {answer}" for answer in ANSWERS)
        return "\n\n".join(filter(None, parts)) + f"\n{listed}\nAnswer:"

    def judged(self, prompts: Sequence[Prompt]) -> list[float | None]:
        """Ask the model; return a verdict per prompt, or None if it abstains."""
        if not prompts:
            return []
        verdicts: list[float | None]
        if self.way in ("text", "structured"):
            verdicts = self.read(self.written(prompts))
        elif self.way == "decision":
            asked = [[DecisionQuestion("yes_no", self.config.question)]] * len(prompts)
            answered = decide(
                self.lm, prompts, asked, way="decision", patience=self.config.patience, role="judge"
            )
            verdicts = [None if choice.fallbacks else float(choice.probabilities[0]) for [choice] in answered]
        else:
            chosen = choose(
                self.lm,
                prompts,
                [ANSWERS] * len(prompts),
                way=self.way,
                by_letter=False,
                patience=self.config.patience,
                role="judge",
            )
            verdicts = [None if choice.fallbacks else float(choice.probabilities[0]) for choice in chosen]
        for verdict in verdicts:
            if verdict is None:
                self.verdicts["abstained"] += 1
            else:
                self.verdicts["yes" if verdict >= 0.5 else "no"] += 1
            reward = verdict or 0.0
            if len(self.rewarded) < 2:  # two rewards that differ are all that a warning asks for
                self.rewarded[reward] = self.rewarded.get(reward, 0) + 1
        self._warn()
        return verdicts

    def read(self, answers: Sequence[str]) -> list[float | None]:
        """Return the verdicts in answers; None for an abstention."""
        verdicts = [read_verdict(answer) for answer in answers]
        yes, no = ANSWERS
        said = [None if verdict is None else yes if verdict >= 0.5 else no for verdict in verdicts]
        self._asking.hear(answers, said, abstains=True)
        return verdicts

    def written(self, prompts: Sequence[Prompt]) -> list[str]:
        """Return one answer per prompt; above temperature 0 a repeated prompt gets another sample."""
        sampling = self._asking.sampling
        if self.way == "structured":
            sampling = replace(sampling, choices=ANSWERS)

        # The number of each answer among those to its prompt.
        samples: list[int] = []
        for prompt in prompts:
            sample = self.asked.get(prompt, 0)
            samples.append(sample)
            if sampling.temperature > 0:
                self.asked[prompt] = sample + 1

        # One call for all prompts whose answers have the same number.
        answers = [""] * len(prompts)
        for sample in sorted(set(samples)):
            due = [i for i in range(len(prompts)) if samples[i] == sample]
            generated = self._asking.generate([prompts[i] for i in due], 1, sample, sampling=sampling)
            for i, (answer,) in zip(due, generated, strict=True):
                answers[i] = answer
        return answers

    def _warn(self) -> None:
        """Warn once if the first :data:`ALIKE` episodes or more all have the same reward."""
        if self.warned or len(self.rewarded) > 1 or sum(self.rewarded.values()) < ALIKE:
            return
        self.warned = True
        total = sum(self.verdicts[name] for name in KINDS)
        alike = [name for name in KINDS if self.verdicts[name] == total]
        if alike:
            what = "abstained from" if alike[0] == "abstained" else f"said {alike[0]} to"
            fault = f"{what} all of {total} episodes so far"
        else:  # such as no and abstentions, which both pay nothing
            [(reward, episodes)] = self.rewarded.items()
            fault = f"gave the reward {reward:g} to each of {episodes} episodes"
        warnings.warn(
            f"The judge {self.lm.name} {fault}: its reward carries no information.",
            HunchWarning,
            stacklevel=2,
        )

    def learn(self) -> dict[str, float]:
        """Return shares of the episodes since the last call.

        ``judge_yes``: verdict yes. ``judge_abstained``: no verdict. ``judge_agrees``: the verdict agrees with
        the environment's success.
        """
        new = {name: n - self.since[name] for name, n in self.verdicts.items()}
        self.since = dict(self.verdicts)
        total = sum(new[name] for name in KINDS)
        return {f"judge_{name}": new[name] / total for name in ("yes", "abstained", "agrees") if total}


def read_verdict(answer: str) -> float | None:
    """Return 1 if an answer says yes, 0 if it says no; None if neither, or "yes or no".

    If an answer names both without deciding, the first counts, as in the paper.
    """
    decided = read_option(answer, ANSWERS)
    if decided is not None:
        return float(decided == 0)
    word = _VERDICT.search(_BOTH.sub("", spoken(answer)))
    return None if word is None else float(word[1].lower() == "yes")
