"""AlphaProof (Hubert et al., Nature 2025): a search for proofs whose guide learns from earlier proofs.

    for each round
        for all statements of the pool, in parallel (after a formaliser, if any, wrote them as formulas)
            disprove: look for a small model in which the statement fails; if there is one, it is refuted
            prove: AND-OR search over tactics, with the guide's priors and values, and a budget of expansions
        store the proof of each goal that was proved anywhere, if the kernel accepts it and it is the shortest
        train the guide: the tactic of the stored proof; value gamma^(its size - 1), 0 where none was found
    test-time RL: variants of the statements that are still open join the pool

In the loop of :mod:`hunch.core` a step is one statement, a round one pass over the pool. All statements of a
round are attempted at its first step, so that one call of the guide evaluates the leaves of all searches.

Deviations: the statements are of propositional logic, and a small network on features of formulas takes the
place of a language model of Lean; the value is from 0 to 1 instead of minus the number of tactics; a
statement is disproved by a model instead of by a proof of its negation; there is no progressive sampling.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal
from zlib import crc32

import numpy as np

from hunch.core import Agent, HunchError, Memoryless, State, Transition, UsageError, World, weakest
from hunch.envs.proofs import kernel
from hunch.envs.proofs.logic import Goal, counter_model, read
from hunch.envs.proofs.statements import Statements, variants
from hunch.envs.proofs.tactics import accepted, moves, tactics
from hunch.lm import require
from hunch.lm.base import LanguageModel
from hunch.methods.method import Method
from hunch.methods.settings import configure
from hunch.ranges import NonNegativeFloat, NonNegativeInt, PositiveFloat, PositiveInt, Share
from hunch.rl import and_or
from hunch.rl.evaluator import Evaluator
from hunch.roles.formaliser import Formaliser
from hunch.roles.guide import UNTRAINED, DecisionGuide, LanguageGuide, PolicyOnly

if TYPE_CHECKING:
    from hunch.core import EvidenceLevel
    from hunch.roles.guide_network import GuideNetwork, Lesson

FAILURES = 5
"""Maximum number of goals per search tree that were tried in vain, whose value is trained towards 0 (ours).
In the tree of a proved statement, too, these are goals of moves that are no part of the proof."""


@dataclass(frozen=True, kw_only=True)
class AlphaProofConfig:
    """Settings of AlphaProof."""

    guide: Literal["network", "lm", "rule", "uniform", "breadth"] = "network"
    """Guide of the search: network (the method), the model of --lm (lm), or a control: rule, uniform, or
    breadth, which expands goals in the order of their depth."""
    budget: PositiveInt = 32
    """Expansions per statement and attempt; each asks the guide about one goal (ours)."""
    combine: Literal["product", "minimum"] = "product"
    """Value of several subgoals: their product (ours), or the smallest (paper)."""
    c: NonNegativeFloat = 2.0
    """Weight of the exploration term of the search (ours)."""
    value: bool = True
    """Use the values of goals of the network or a decision model; if off, all goals have the same value."""
    gamma: Share = 0.95
    """Value of a proof with n tactics: gamma to the power of n - 1 (ours)."""
    disprove: NonNegativeInt = 50
    """Random Kripke models, tried after all classical assignments to refute a statement (ours)."""
    curriculum: bool = False
    """Spend the expansions of statements that are already proved on open statements."""
    variants: NonNegativeInt = 0
    """Test-time RL: new variants per statement that is open after a round; they join the pool. 0 for none."""
    updates: PositiveInt = 500
    """Gradient steps of the network per round (ours)."""
    batch: PositiveInt = 64
    """Goals per gradient step (ours)."""
    learning_rate: PositiveFloat = 1e-3
    """Adam learning rate of the network (ours)."""
    width: PositiveInt = 128
    """Width of the network's layers (ours)."""
    targets: Literal["proofs", "shuffled"] = "proofs"
    """Tactics that the network learns: those of the proofs, or random ones of the same goals (control)."""
    formaliser: str = ""
    """Model that translates English statements into formulas. Default: the model of --lm, if it writes."""
    readings: PositiveInt = 5
    """Translations per English statement; the most frequent one is chosen (ours)."""
    returns: NonNegativeInt = 0
    """Back-translations of each candidate formula into English, to choose among them; 0 for none (ours)."""


class AlphaProof(Agent):
    """The agent of AlphaProof.

    Args:
        config: All settings; ``options`` change single ones.
        lm: A model that scores; guides the search with ``guide="lm"``.
        formaliser: A model that generates; translates English statements, if there are any.

    Raises:
        UsageError: if the guide should be a language model, and none is given.
    """

    config_class: ClassVar[type[Any]] = AlphaProofConfig
    saved = (
        "round",
        "spent",
        "stored",
        "formulas",
        "attempts",
        "given",
        "refuted",
        "unmeant",
        "failed",
        "extra",
        "network",
    )

    def __init__(
        self,
        config: AlphaProofConfig | None = None,
        *,
        lm: LanguageModel | None = None,
        formaliser: LanguageModel | None = None,
        **options: Any,
    ) -> None:
        self.config: AlphaProofConfig = configure(type(self), config, options)
        self.check(self.config, {"lm": "given"} if lm else {})
        models = {"lm": lm, "formaliser": formaliser}
        self.models = {role: model for role, model in models.items() if model}
        self.formaliser = formaliser and Formaliser(formaliser, self.config.readings, self.config.returns)

    @classmethod
    def check(cls, config: AlphaProofConfig, specs: Mapping[str, str]) -> None:
        """Check before loading that a model is named if the guide is a language model."""
        if config.guide == "lm" and "lm" not in specs:
            raise UsageError("With --guide lm a language model guides the search: name one with --lm.")

    @property
    def evidence(self) -> EvidenceLevel | None:
        """The weakest evidence level of the models; None without a model."""
        return weakest(model.evidence for model in self.models.values())

    def begin(self, world: World, seed: int) -> None:
        """Forget all proofs, and read the statements to prove."""
        self.seed = seed
        self.round = 0
        self.spent = 0  # expansions of the search
        self.texts = world.problem.texts if isinstance(world.problem, Statements) else ()
        self.goals: dict[str, Goal | None] = {}  # by text: its formal statement
        # By goal: index of the first tactic, number of tactics, and the term that the kernel accepted.
        self.stored: dict[str, tuple[int, int, str]] = {}
        # By text that was attempted: its formula, or an empty text where the formaliser wrote none.
        self.formulas: dict[str, str] = {}
        self.attempts: dict[str, str] = {}  # of this round, by text: the proof, or an empty text
        self.given: list[str] = []  # texts for which a proof was asked in this round
        self.refuted: dict[str, str] = {}  # by text: a counter-model
        self.unmeant: list[str] = []  # texts whose proof is of another statement than was meant
        self.failed: list[str] = []  # goals that were tried in vain in this round
        self.extra: list[str] = []  # variants of open statements
        self.network: GuideNetwork | None = None
        self.guide = self._guide()
        self.shown: tuple[Any, str] = (None, "")  # what files returned last, and for which state

    def _guide(self) -> Evaluator:
        c = self.config
        if c.guide == "lm":
            lm = self.models["lm"]
            if "score" in lm.verbs:
                return LanguageGuide(lm)
            guide = DecisionGuide(require(lm, "decide", needed_by="A guide of the search"))
            return guide if c.value else PolicyOnly(guide)
        if c.guide != "network":
            return UNTRAINED[c.guide]
        from hunch.roles.guide_network import GuideNetwork  # loads torch

        self.network = GuideNetwork(self.seed, width=c.width, learning_rate=c.learning_rate)
        return self.network if c.value else PolicyOnly(self.network)

    def act(self, states: Sequence[State]) -> list[str]:
        """Return the proof of each statement; an empty text if none is known."""
        texts = [state.observation for state in states]
        every = dict.fromkeys([*texts, *self.texts])
        due = [text for text in every if text not in self.attempts]
        if due:
            self._attempt(due)
        return [self.attempts[text] for text in texts]

    def _attempt(self, texts: Sequence[str]) -> None:
        """Disprove or prove statements, side by side with the variants of open ones."""
        goals = dict(zip(texts, self.statements(texts), strict=True))
        self.formulas |= {text: str(goal) if goal else "" for text, goal in goals.items()}

        # Disprove: a counter-model refutes a statement once and for all. Those of the pool are tried once.
        for text, goal in goals.items():
            if goal and text not in self.refuted and (self.round == 0 or text not in self.texts):
                world = counter_model(goal, self.config.disprove)
                if world:
                    self.refuted[text] = str(world)

        # Prove: one AND-OR search per statement, all side by side.
        due = [goal for text, goal in goals.items() if goal and text not in self.refuted]
        due = list(dict.fromkeys([*due, *map(read, self.extra)]))
        budget = self.config.budget
        if self.config.curriculum:
            unproved = [goal for goal in due if str(goal) not in self.stored]
            if unproved:  # they get the expansions of the others, too
                budget = budget * len(due) // len(unproved)
                due = unproved
        for tree in search(self.config, self.guide, due, (self.seed, self.round), budget):
            self.spent += tree.expansions
            self._keep(tree)
        self.attempts |= {text: self._proof(self.formulas[text]) for text in texts}

    def statements(self, texts: Sequence[str]) -> list[Goal | None]:
        """Return the formal statement of each text; None where the formaliser fails."""
        new = [text for text in dict.fromkeys(texts) if text not in self.goals]
        words = [text for text in new if self.formaliser and "|-" not in text]
        if not self.formaliser and any("Show that " in text for text in new):
            raise UsageError("Statements in English need a model that reads them: name one as --formaliser.")
        formulas = self.formaliser.read(words) if self.formaliser and words else []
        self.goals |= zip(words, formulas, strict=True)
        self.goals |= {text: read(text) for text in new if text not in self.goals}
        return [self.goals[text] for text in texts]

    def _proof(self, formula: str) -> str:
        """Return the proof of a formula; an empty text if it is not proved."""
        return self.stored[formula][2] if formula in self.stored else ""

    def _keep(self, tree: and_or.Tree) -> None:
        """Store what was proved in a tree, and note goals that were tried in vain."""
        failed = []
        for node in and_or.nodes(tree.root):
            if node.proof is not None:
                self._store(node.state, node.proof)
            elif node.moves:
                failed.append(str(node.state))
        self.failed += failed[:FAILURES]

    def _store(self, goal: Goal, proof: and_or.Proof) -> None:
        """Store the proof of a goal, if the kernel accepts it and it is the shortest."""
        known = self.stored.get(str(goal))
        if known is not None:
            _, size, _ = known
            if size <= proof.size:
                return
        term = accepted(goal, proof)
        if term:
            tactic = [action for action, _ in tactics(goal)].index(proof.action)
            self.stored[str(goal)] = tactic, proof.size, term

    def observe(self, transitions: Sequence[Transition]) -> None:
        """Record which statements were attempted, and which proofs prove another statement than intended."""
        for t in transitions:
            self.given.append(t.state.observation)
            if t.action and not t.success and t.state.observation not in self.unmeant:
                self.unmeant.append(t.state.observation)

    def learn(self) -> dict[str, float]:
        """Train the guide after each round, and begin the next one.

        Raises:
            HunchError: if the kernel refuses a stored proof.
        """
        # A round is over when each statement of the pool was asked for; without a pool, after each statement.
        if len(set(self.given)) < max(1, len(self.texts)):
            return {}
        n = len(self.attempts)
        metrics = {
            "proved": sum(map(bool, self.attempts.values())) / n,
            "refuted": sum(text in self.refuted for text in self.attempts) / n,
        }
        if self.formaliser:
            metrics["unfaithful"] = len(self.unmeant) / n
        metrics["expansions"] = float(self.spent)
        metrics["stored"] = float(len(self.stored))
        self._check()
        if self.network is not None:
            metrics |= self.network.learn(self._lessons(), self.config.updates, self.config.batch)
        self._vary()
        self.round += 1
        self.attempts = {}
        self.given = []
        self.failed = []
        return metrics

    def _check(self) -> None:
        """Let the kernel check every stored proof again."""
        for text, (_, _, proof) in self.stored.items():
            try:
                kernel.check(read(text), proof)
            except kernel.ProofError as error:
                raise HunchError(f"The kernel refuses the stored proof of {text!r}: {error}") from None

    def _lessons(self) -> list[Lesson]:
        """What the stored proofs teach, and at most half as many goals that were tried in vain."""
        from hunch.roles.guide_network import Lesson  # loads torch

        rng = np.random.default_rng([self.seed, self.round])
        lessons: list[Lesson] = []
        for text, (tactic, size, _) in self.stored.items():
            goal = read(text)
            if self.config.targets == "shuffled":
                tactic = int(rng.integers(len(tactics(goal))))
            # policy target: the proof's first tactic; value target: gamma^(tactics - 1)
            lessons.append(Lesson(goal, tactic, self.config.gamma ** (size - 1)))
        # value target 0, and no tactic, where the search found no proof
        failed = [text for text in dict.fromkeys(self.failed) if text not in self.stored]
        chosen = rng.permutation(len(failed))[: len(lessons) // 2]
        return lessons + [Lesson(read(failed[i]), -1, 0.0) for i in chosen]

    def _vary(self) -> None:
        """Draw variants of statements that are open, once."""
        if not self.config.variants or self.extra:
            return
        rng = np.random.default_rng([self.seed, self.round, 1])
        for text, proof in self.attempts.items():
            (goal,) = self.statements([text])
            if not proof and goal and text not in self.refuted:
                for variant in variants(goal, self.config.variants, rng):
                    if counter_model(variant) is None:
                        self.extra.append(str(variant))

    def player(self, seed: int) -> Memoryless:
        """Return a player that searches for proofs with the current guide."""

        def act(states: Sequence[State], _: np.random.Generator) -> list[str]:
            goals = self.statements([state.observation for state in states])
            known = list(dict.fromkeys(goal for goal in goals if goal))
            trees = search(self.config, self.guide, known, (seed,), self.config.budget)
            proofs = {goal: accepted(goal, tree.root.proof) for goal, tree in zip(known, trees, strict=True)}
            return [proofs[goal] if goal else "" for goal in goals]

        return Memoryless(act, seed)

    def files(self) -> dict[str, str]:
        """Return :meth:`results` so far as the text of ``proofs.jsonl``, one line per statement."""
        now = self.round, len(self.attempts), len(self.unmeant)
        if now != self.shown[0]:
            self.shown = now, "".join(f"{json.dumps(line)}\n" for line in self.results())
        return {"proofs.jsonl": self.shown[1]}

    def results(self) -> list[dict[str, Any]]:
        """Return the result of each statement: proved, refuted (with a counter-model), or open."""
        return [{"statement": text, **self._became(text)} for text in self.texts]

    def _became(self, text: str) -> dict[str, Any]:
        formula = self.formulas.get(text, "")
        read_as = {} if formula == text else {"formula": formula or None}
        if text in self.refuted:
            return {**read_as, "result": "refuted", "witness": self.refuted[text]}
        proof = self._proof(formula)
        if not proof:
            return {**read_as, "result": "open"}
        result = "proved, but it is not what was meant" if text in self.unmeant else "proved"
        return {**read_as, "result": result, "proof": proof, "tree": kernel.outline(proof)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore a state; the kernel checks every proof in it, and the formaliser is not asked again."""
        super().load_state_dict({"formulas": {}, **state})  # checkpoints of earlier versions have none
        self.goals = {text: read(formula) if formula else None for text, formula in self.formulas.items()}
        self._check()


def search(
    config: AlphaProofConfig, guide: Evaluator, goals: Sequence[Goal], seed: Sequence[int], budget: int
) -> list[and_or.Tree]:
    """Search for proofs of goals, each with its own random generator."""
    rngs = [np.random.default_rng([*seed, crc32(str(goal).encode())]) for goal in goals]
    rule: Literal["breadth", "puct"] = "breadth" if config.guide == "breadth" else "puct"
    how = and_or.AndOr(budget=budget, rule=rule, combine=config.combine, c=config.c, gamma=config.gamma)
    return how.search(goals, moves, guide, rngs)


METHOD = Method(
    "alpha-proof",
    AlphaProof,
    "prove theorems by AND-OR search, and train its guide on the proofs",
    "Hubert et al., Olympiad-level formal mathematical reasoning with reinforcement learning, Nature 2025",
    leaf="LLM4RL / policy",
    environments="proofs",
    acts="text",
    models={"lm": ("score", "decide", "generate"), "formaliser": ("generate",)},
    unnamed=frozenset({"lm", "formaliser"}),
    suggested=("hf:<name or folder>",),
    roles=("guide", "formaliser"),
    data="none",
    changeable=("budget",),
)
