"""Our environments in TRL's GRPOTrainer (extra ``trl``; tested with trl 1.16.0 and transformers 5.23).

Two interfaces, both experimental in TRL: :func:`rollout` plays whole episodes with any causal model, as
``rollout_func``; :func:`factory` gives a chat model with a template for tools one tool, ``act``, as
``environment_factory``. Rows of a data set hold seeds (:func:`episodes`), so the answers of a group share the
beginning of their episode.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from hunch.core import UsageError
from hunch.ext.turns import Turn, Turns
from hunch.lm.backends.generation import EVERY_TOKEN, end_tokens, only_stated

PROMPT = "Your task is to: {task}\n{text}\n>"
"""First text of an episode for a model without a chat template; the model's turn ends with the line."""


def episodes(n: int, first: int = 0) -> list[dict[str, Any]]:
    """Return the rows of a data set of n episodes: their seeds, in the column ``prompt`` of TRL."""
    return [{"prompt": str(seed)} for seed in range(first, first + n)]


def chats(n: int, first: int = 0, request: str = "Solve the task by calling act.\n") -> list[dict[str, Any]]:
    """Return such rows for chat models: a user message, to which the first observation is added."""
    message = [{"role": "user", "content": request}]
    return [{"prompt": message, "seed": seed} for seed in range(first, first + n)]


def returns(completions: Sequence[Any], episode_return: Sequence[float], **_: Any) -> list[float]:
    """Return the return of each episode: the reward function for :func:`rollout`."""
    return list(episode_return)


def admissible(completions: Sequence[Any], admissible_share: Sequence[float], **_: Any) -> list[float]:
    """Return the share of each episode's lines that were admissible: a reward function for :func:`rollout`.

    A small model first has to learn to write actions: until one of a group's episodes is solved, their
    returns are all equal and teach nothing.
    """
    return list(admissible_share)


@dataclass
class _Played:
    """An episode as tokens; ``mask`` is 1 for those that the model wrote."""

    turns: Turns
    prompt: list[int]
    actions: tuple[str, ...] | None  # what is admissible now
    tokens: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    mask: list[int] = field(default_factory=list)
    total: float = 0.0
    lines: int = 0
    admissible: int = 0
    done: bool = False

    def add(self, tokens: Sequence[int], logprobs: Sequence[float], written: bool) -> None:
        self.tokens += tokens
        self.logprobs += logprobs
        self.mask += [int(written)] * len(tokens)


def rollout(
    env: str, *, turn_tokens: int = 32, listed: bool = False, **options: Any
) -> Callable[[list[str], Any], dict[str, Any]]:
    """Return a ``rollout_func`` that plays one episode per prompt; the prompt is the episode's seed.

    The model reads task, observations and its own lines as one text; it writes one line per turn. An episode
    also ends where the next turn would not fit into ``max_completion_length``.

    Args:
        env: Id of a text environment; where actions are listed, an inadmissible text costs a step.
        turn_tokens: Maximum tokens per turn.
        listed: Whether each observation names the admissible actions, where they are listed.
        options: Options of the environment.

    Raises:
        UsageError: if there is no such environment or option, or a trainer cannot drive it.
    """
    first = Turns(env, **options)

    def text_of(turn: Turn) -> str:
        return _shown(turn) if listed else turn.text

    def play(prompts: list[str], trainer: Any) -> dict[str, Any]:
        tokenizer, most = trainer.processing_class, trainer.args.max_completion_length
        played = [_begun(first.fork(), prompt, tokenizer, text_of) for prompt in prompts]
        while live := [episode for episode in played if not episode.done]:
            for episode, (tokens, logprobs) in zip(live, _write(live, trainer, turn_tokens), strict=True):
                episode.add(tokens, logprobs, True)
                action = tokenizer.decode(tokens, skip_special_tokens=True).strip()
                episode.lines += 1
                episode.admissible += episode.actions is None or action in episode.actions
                turn = episode.turns.step(action)
                episode.total += turn.reward
                episode.actions = turn.actions
                shown = tokenizer.encode(f"{text_of(turn)}\n>", add_special_tokens=False)
                episode.done = turn.done or len(episode.tokens) + len(shown) + turn_tokens > most
                if not episode.done:
                    episode.add(shown, [0.0] * len(shown), False)
        return {
            "prompt_ids": [episode.prompt for episode in played],
            "completion_ids": [episode.tokens for episode in played],
            "logprobs": [episode.logprobs for episode in played],
            "env_mask": [episode.mask for episode in played],
            "episode_return": [episode.total for episode in played],
            "admissible_share": [episode.admissible / episode.lines for episode in played],
        }

    return play


def _begun(turns: Turns, prompt: str, tokenizer: Any, text_of: Callable[[Turn], str]) -> _Played:
    if not (isinstance(prompt, str) and prompt.isdecimal()):
        raise UsageError(
            f"A prompt of the data set is the seed of an episode, not {prompt!r}: use episodes(n)."
        )
    turn = turns.reset(int(prompt))
    first_text = PROMPT.format(task=turn.task, text=text_of(turn))
    return _Played(turns, tokenizer.encode(first_text), turn.actions)


def _write(live: Sequence[_Played], trainer: Any, most: int) -> list[tuple[list[int], list[float]]]:
    """Write a line for each episode with the trained model, and return tokens and log-probabilities.

    Tokens are drawn from the whole distribution at the trainer's temperature. TRL computes the probabilities
    of the current policy from the same distribution, so no setting of the checkpoint may change it.
    """
    from trl.models import unwrap_model_for_generation

    tokenizer, device = trainer.processing_class, trainer.accelerator.device
    heads = [row.prompt + row.tokens for row in live]
    width = max(map(len, heads))
    ids = torch.tensor([[tokenizer.pad_token_id] * (width - len(h)) + h for h in heads], device=device)
    seen = torch.tensor([[0] * (width - len(h)) + [1] * len(h) for h in heads], device=device)
    with (
        unwrap_model_for_generation(trainer.model_wrapped, trainer.accelerator) as model,
        only_stated(model),
        torch.no_grad(),
    ):
        ends = end_tokens(model, tokenizer)
        written = model.generate(
            input_ids=ids,
            attention_mask=seen,
            **EVERY_TOKEN,
            temperature=trainer.args.temperature,
            max_new_tokens=most,
            stop_strings=["\n"],
            tokenizer=tokenizer,
            eos_token_id=sorted(ends),
            pad_token_id=tokenizer.pad_token_id,
            return_dict_in_generate=True,
            output_scores=True,
        )
    log_probs = torch.stack(written.scores, 1).log_softmax(-1)  # (episodes, tokens, vocabulary)
    drawn = written.sequences[:, width:]  # (episodes, tokens)
    logprobs = log_probs.gather(2, drawn[..., None])[..., 0]  # (episodes, tokens)
    rows = zip(drawn.tolist(), logprobs.tolist(), strict=True)
    return [_line(tokens, row, tokenizer, ends) for tokens, row in rows]


def _line(
    tokens: list[int], logprobs: list[float], tokenizer: Any, ends: Collection[int]
) -> tuple[list[int], list[float]]:
    """Return what was written up to the end of its line, or an end token; padding follows."""
    for i, token in enumerate(tokens, 1):
        if token in ends or "\n" in tokenizer.decode(tokens[:i]):
            return tokens[:i], logprobs[:i]
    return tokens, logprobs


def factory(env: str, **options: Any) -> type:
    """Return a class for ``environment_factory`` with a tool ``act``, which takes the action as a text.

    Args:
        env: Id of a text environment; where actions are listed, every observation names them, and an
            inadmissible text costs a step.
        options: Options of the environment.

    Raises:
        UsageError: if there is no such environment or option, or a trainer cannot drive it.
    """
    first = Turns(env, **options)

    class TextGame:
        """A text environment whose only tool is ``act``."""

        def __init__(self) -> None:
            self._turns, self._total, self._done = first.fork(), 0.0, False

        def reset(self, seed: int = 0, **_: Any) -> str:
            """Begin the episode of a row."""
            self._total, self._done = 0.0, False
            turn = self._turns.reset(int(seed))
            return f"{turn.task}\n{_shown(turn)}"

        def act(self, action: str) -> str:
            """Take an action in the environment.

            Args:
                action: The action, as a text.

            Returns:
                What is observed afterwards.
            """
            if self._done:
                return "The episode is over."
            turn = self._turns.step(action)
            self._total, self._done = self._total + turn.reward, turn.done
            return _shown(turn)

        def get_reward(self) -> float:
            """Return the return of the episode so far."""
            return self._total

    return TextGame


def _shown(turn: Turn) -> str:
    return (
        turn.text if turn.actions is None else f"{turn.text}\nAdmissible actions: {'; '.join(turn.actions)}"
    )
