"""Models in the format GGUF, by llama.cpp: those of the shelf by name, any other as ``gguf:<file>``.

All of a user's processes share one server (:mod:`hunch.lm.backends.llama_server`), which is started by the
first that needs it and ends with the last. It is asked through the routes of :mod:`hunch.lm.backends.openai`,
with what llama.cpp can do besides:

- Samples of one prompt are one request, which reads the prompt once. Sample i has the seed s + i, where s is
  drawn from prompt and sampling, and llama.cpp gives text j of a request the request's seed + j. So the cut
  into requests decides nothing but the rounding: that of a text depends on what else is computed at the
  moment, and may turn a token into another. **The stored answer is the truth.** With one slot and nobody
  else at the server answers repeat bit for bit.
- A choice is restricted by a grammar that allows the options and nothing else.
- The score of an option is the sum of the log-probabilities of its tokens, which a grammar forces. An option
  is one request, and the server keeps what it has read of the prompt.
- Every sampling setting is sent. llama.cpp's own (top_k 40, min_p 0.05) would give other probabilities.
"""

from __future__ import annotations

import asyncio
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from functools import partial
from itertools import count, groupby
from os.path import commonprefix
from pathlib import Path
from typing import Any, Final, TypeAlias

import numpy as np

from hunch.core import HunchError, UsageError
from hunch.lm import shelf
from hunch.lm.answers.question import Question
from hunch.lm.backends import llama_server
from hunch.lm.backends.gguf_header import control_tokens_of, header_of
from hunch.lm.backends.http import Line, Request, RequestError
from hunch.lm.backends.llama_server import Settings, Use
from hunch.lm.backends.openai import OpenAIModel
from hunch.lm.backends.remote import SHARES, account
from hunch.lm.backends.replies import one
from hunch.lm.backends.sampling import count_words, room_to_think, sample_rng
from hunch.lm.base import Backend, OptionScores, Verb
from hunch.lm.prompts import Prompt
from hunch.lm.shorten import shortened
from hunch.lm.speech import Sampling, text_of

VERBS: Final[frozenset[Verb]] = frozenset({"generate", "label", "score"})
BACKEND: Final = Backend(
    "gguf:<file>",
    f"{__name__}:load",
    VERBS,
    "a model in a GGUF file, by llama.cpp in a process of its own",
    check=f"{__name__}:check",
    outline=f"{__name__}:outline",
)
HOSTED: Final = "http://127.0.0.1/v1"
CONTEXT: Final = 4096
"""Default tokens that a prompt and its answer may have together."""
SHORT_ANSWER: Final = 64
"""Tokens for an answer of one line by a model that does not think first: small ones ramble if they may."""
EVERY_SETTING: Final[dict[str, float]] = {
    "top_k": 0,
    "min_p": 0.0,
    "typical_p": 1.0,
    "repeat_penalty": 1.0,
    "presence_penalty": 0.0,
    "frequency_penalty": 0.0,
}
"""Sampling settings that are off; those of a request come besides."""
ANY_LETTER: Final = 'root ::= "a"'
"""Grammar of requests that only read the log-probabilities of the next token."""
LISTED: Final = 200
"""Likely tokens that a request for an option lists at each place (ours)."""
ALL_TOKENS: Final = 10**6
"""More tokens than any model has."""
Token: TypeAlias = tuple[int, bool]
"""Number of a token, and whether it consists of complete characters."""
_followers: ContextVar[Mapping[Question, list[Question]]] = ContextVar("_followers")
"""The questions that each request of the present call answers, by the first of them. Threads that share a
model have a context each, so one's call does not see another's."""
TEMPLATE: Final = "gguf-1"
"""Version of how a prompt is presented; part of the revision, so raise it when that changes."""


def check(
    file: str,
    *,
    context: int = CONTEXT,
    slots: int = 4,
    threads: int = 0,
    gpu_layers: int = 0,
    lora: str = "",
) -> Path | None:
    """Check options and file before anything is started; see :func:`load`."""
    settings_of(file, context=context, slots=slots, threads=threads, gpu_layers=gpu_layers, lora=lora)
    return None


def settings_of(file: str | Path, **options: Any) -> Settings:
    """Return how a file is served.

    Raises:
        UsageError: if the file is no GGUF file, or an option is out of range.
    """
    check_numbers(options)
    lora = options["lora"]
    if lora and not Path(lora).expanduser().is_file():
        raise UsageError(f"There is no adapter {lora!r}: lora takes a GGUF file.")
    adapter = str(Path(lora).expanduser().absolute()) if lora else ""
    path = str(Path(file).expanduser().absolute())
    settings = Settings(path, **{**options, "lora": adapter})
    llama_server.check_settings(settings)
    if adapter:
        header_of(Path(adapter))
    return settings


def check_numbers(options: Mapping[str, Any]) -> None:
    """Check the options that are numbers, without a look at any file.

    Raises:
        UsageError: naming an option that is out of range.
    """
    for name, least in (("context", 64), ("slots", 1), ("threads", 0), ("gpu_layers", -1)):
        value = options[name]
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise UsageError(f"{name} must be a whole number of at least {least}, not {value!r}.")


def load(
    file: str,
    *,
    context: int = CONTEXT,
    slots: int = 4,
    threads: int = 0,
    gpu_layers: int = 0,
    lora: str = "",
) -> LlamaModel:
    """Load a model from a GGUF file; the machine's llama.cpp server is found or started.

    Args:
        file: The file.
        context: Tokens that a prompt and its answer may have together.
        slots: Texts that are computed at once.
        threads: Threads; 0 for the cores of the machine.
        gpu_layers: Layers on an accelerator, if llama.cpp was built for one.
        lora: File of a LoRA adapter, in GGUF.

    Raises:
        UsageError: for a wrong option or file, or if a package is missing.
        HunchError: if llama.cpp cannot load the model, or serves another one that is in use.
    """
    options: dict[str, Any] = {"context": context, "slots": slots, "threads": threads}
    return LlamaModel(settings_of(file, **options, gpu_layers=gpu_layers, lora=lora))


def load_shelved(
    name: str,
    *,
    context: int = CONTEXT,
    slots: int = 4,
    threads: int = 0,
    gpu_layers: int = 0,
    lora: str = "",
) -> LlamaModel:
    """Load a model of the shelf; see :func:`load`.

    Raises:
        HunchError: if it is not on this machine; the message names the command that fetches it.
    """
    numbers = {"context": context, "slots": slots, "threads": threads, "gpu_layers": gpu_layers}
    check_numbers(numbers)  # before a model that has to be fetched is asked for
    return load(str(shelf.file_of(name)), **numbers, lora=lora)


def outline(file: str, **options: Any) -> LlamaModel:
    """Return a model of :func:`load` that cannot be asked; no server is looked for or started."""
    return LlamaModel(settings_of(file, **options), connect=False)


def outline_shelved(name: str, **options: Any) -> LlamaModel:
    """Return a model of :func:`load_shelved` that cannot be asked; see :func:`outline`."""
    check_numbers(options)  # before a model that has to be fetched is asked for
    return outline(str(shelf.file_of(name)), **options)


smollm2 = partial(load_shelved, "smollm2")
gemma3_270m = partial(load_shelved, "gemma3-270m")
qwen_coder_small = partial(load_shelved, "qwen-coder-0.5b")
qwen_coder_large = partial(load_shelved, "qwen-coder-1.5b")
outline_of_smollm2 = partial(outline_shelved, "smollm2")
outline_of_gemma3_270m = partial(outline_shelved, "gemma3-270m")
outline_of_qwen_coder_small = partial(outline_shelved, "qwen-coder-0.5b")
outline_of_qwen_coder_large = partial(outline_shelved, "qwen-coder-1.5b")


def _shelved(name: str, loader: str) -> Backend:
    summary = f"{shelf.SHELF[name].summary} ('hunch models get {name}')"
    return Backend(name, f"{__name__}:{loader}", VERBS, summary, outline=f"{__name__}:outline_of_{loader}")


SMOLLM2: Final = _shelved("smollm2", "smollm2")
GEMMA3: Final = _shelved("gemma3-270m", "gemma3_270m")
QWEN_SMALL: Final = _shelved("qwen-coder-0.5b", "qwen_coder_small")
QWEN_LARGE: Final = _shelved("qwen-coder-1.5b", "qwen_coder_large")


class LlamaModel(OpenAIModel):
    """A model that the machine's llama.cpp server holds.

    Its revision is the SHA-256 of its file and of its adapter, and a context that is not the default.
    Without a chat template it continues text.
    """

    verbs = VERBS
    every_setting = EVERY_SETTING
    counts_first_text = True
    cuts_only_at_max_tokens = True
    unnamed = OpenAIModel.unnamed | {"context", "slots", "threads", "gpu_layers"}

    def __init__(self, settings: Settings, *, connect: bool = True) -> None:
        """Find or start the server; without ``connect`` the model only has its attributes."""
        self.settings = settings
        self._use: Use | None = None
        if connect:
            self._connect()
        else:
            self.line = self._line(HOSTED)
        super().__init__(Path(settings.file).stem, self.line, evidence="L3")
        self.name = f"gguf:{settings.file}"
        self._hashes = [shelf.sha256_of(Path(file))[:16] for file in (settings.file, settings.lora) if file]
        control = control_tokens_of(Path(settings.file))
        self._control = re.compile("|".join(map(re.escape, control)))
        self.context = settings.context
        self.states = True
        header = header_of(Path(settings.file))
        self.route = "chat" if header.has_chat_template else "text"
        if self.route == "chat":
            self.thinks = header.thinks
        if self.thinks:  # the next token begins a thought, and is no letter
            self.verbs = VERBS - {"label"}

    def _connect(self) -> None:
        """Find or start the server; also after a copy of the model has reached another process."""
        self._use = Use(self.settings, say=lambda text: print(f"hunch: {text} …", file=sys.stderr))
        self._served = self._use.served
        self.line = self._line(self._served.address)

    def _line(self, address: str) -> Line:
        return Line(
            account("openai", address, None, HOSTED),
            concurrency=self.settings.slots,
            timeout=600.0,
            retries=1,
            patience=60.0,
        )

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name not in ("_use", "line")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._connect()

    @property
    def revision(self) -> str:  # type: ignore[override]
        """The hashes of the files, the version of how prompts are presented, and the context.

        A prompt that does not fit into the context loses its oldest history, so the context decides what is
        asked. The default is left out, as in the keys of answers that were stored before.
        """
        parts = [*self._hashes, TEMPLATE, self.route]
        if self.settings.context != CONTEXT:
            parts.append(f"context={self.settings.context}")
        return " ".join(parts)

    @property
    def answer_tokens(self) -> int:  # type: ignore[override]
        """Tokens for an answer of one line by a chat model, and for its thoughts; 0 if it continues text."""
        if self.route == "text":
            return 0
        return room_to_think(self.context) if self.thinks else SHORT_ANSWER

    @property
    def takes(self) -> frozenset[str]:  # type: ignore[override]
        """Answers can be restricted to given options, with or without chat."""
        return frozenset(("choices",))

    # ---- scores of options --------------------------------------------------------------------------------

    async def _send(self, question: Question, skip: Callable[[], bool] | None) -> Any:
        """Send a question; a score takes a request for each token of the options."""
        if question.verb != "score":
            return await super()._send(question, skip)
        if skip is not None and await asyncio.to_thread(skip):
            return None
        prompt, options = question.request
        text = text_of(prompt)
        if not text:
            raise UsageError(f"{self.name} cannot score options after an empty prompt: add a text.")
        head, tails = await self._fitting(text, options)
        before = [number for number, _ in head]
        sums = await self._sums(before, tails)
        self.tokens_read += len(head) + sum(map(len, tails))
        return OptionScores(np.array(sums), np.array([len(tail) for tail in tails]), count_words(options))

    async def _sums(self, before: list[int], tails: Sequence[tuple[Token, ...]]) -> list[float]:
        """Return log p(option | prompt) of each option: the sum over its tokens.

        One option after the other, since they share the prompt, which one slot of the server has read. A
        request for an option also lists the likely tokens at each of its places. An option whose tokens are
        all listed needs no request of its own; of another one, only the tokens from the first unlisted one on
        are asked for.
        """
        # log p(token | prompt, earlier tokens of the option), by the earlier tokens
        listed: dict[tuple[int, ...], dict[int, float]] = {}
        sums = []
        for tail in tails:
            if not all(is_whole for _, is_whole in tail):
                sums.append(sum(await self._in_parts(before, tail)))
                continue
            numbers = tuple(number for number, _ in tail)
            places = [(numbers[:end], number) for end, number in enumerate(numbers)]
            known = [number in listed.get(earlier, {}) for earlier, number in places]
            if not all(known):
                # The request begins where the option leaves those before it: what they share is read as a
                # part of the prompt, and in most cases the server still has it.
                first = known.index(False)
                steps = await self.line.send(self._forced([*before, *numbers[:first]], numbers[first:]))
                for (earlier, _), step in zip(places[first:], steps, strict=True):
                    listed.setdefault(earlier, {}).update(step)
            sums.append(sum(listed[earlier][number] for earlier, number in places))
        return sums

    async def _in_parts(self, before: list[int], tail: tuple[Token, ...]) -> list[float]:
        """Return log p(token | prompt, earlier tokens) of each token of an option, in a request each.

        It is for options with tokens that are only a part of a character, see :meth:`_next`.
        """
        log_probs = []
        for end, token in enumerate(tail):
            earlier = [number for number, _ in tail[:end]]
            log_probs.append(await self.line.send(self._next([*before, *earlier], token)))
        return log_probs

    async def _fitting(
        self, text: str, options: Sequence[str]
    ) -> tuple[tuple[Token, ...], list[tuple[Token, ...]]]:
        """Return the tokens of a prompt, without its oldest part if it is too long, and of the options."""
        for share in SHARES:
            kept = text_of(shortened(text, partial(_is_within, share * len(text))))
            head, tails = await self._in_tokens(kept, options)
            if len(head) + max(map(len, tails)) <= self.settings.context:
                break
        if share < 1:
            self.shortened += 1
            self._warn("read only a part of a prompt that is longer than the model reads")
        return head, tails

    async def _in_tokens(
        self, text: str, options: Sequence[str]
    ) -> tuple[tuple[Token, ...], list[tuple[Token, ...]]]:
        """Return the tokens of a prompt and of each option after it.

        Raises:
            UsageError: if the tokenizer merges the end of the prompt and the beginning of an option.
        """
        joint = "" if text[-1].isspace() else " "
        head = await self.line.send(self._tokens(text))
        tails = []
        for option in options:
            tokens = await self.line.send(self._tokens(f"{text}{joint}{option}"))
            if tokens[: len(head)] != head or len(tokens) == len(head):
                raise UsageError(
                    f"The tokenizer of {self.name} merges the end of the prompt with the option {option!r}, "
                    "so the option has no probability of its own; end prompts without white space."
                )
            tails.append(tokens[len(head) :])
        return head, tails

    def _tokens(self, text: str) -> Request:
        """Return the request for the tokens of a text, in which control tokens stay text."""
        route = self.line.account.base_url.removesuffix("/v1") + "/tokenize"
        body = {"content": text, "add_special": True, "parse_special": False, "with_pieces": True}
        return Request(route, body, _read_tokens)

    def _forced(self, before: list[int], numbers: Sequence[int]) -> Request:
        """Return the request for the log-probabilities of the tokens of an option.

        A grammar forces them, one after the other, and the server says of each how probable it was before the
        grammar, and which tokens were the most likely. It says so of complete characters only.
        """
        body = {"model": self.model, "prompt": before, "max_tokens": len(numbers), "temperature": 1.0}
        body |= {**EVERY_SETTING, "logprobs": LISTED}
        body["grammar"] = f"root ::= {' '.join(f'<[{number}]>' for number in numbers)}"
        return Request("/completions", body, partial(_read_forced, numbers))

    def _next(self, before: list[int], token: Token) -> Request:
        """Return the request for the log-probability of the next token, also for a part of a character.

        Another token is forced, and the server lists the log-probabilities of all tokens, which takes longer.
        """
        number, is_whole = token
        if is_whole:
            return self._forced(before, (number,))._replace(read=partial(_read_first, number))
        body = {"model": self.model, "prompt": before, "max_tokens": 1, "temperature": 1.0, **EVERY_SETTING}
        body |= {"grammar": ANY_LETTER, "logprobs": ALL_TOKENS}
        return Request("/completions", body, partial(_read_listed, number))

    # ---- asking -------------------------------------------------------------------------------------------

    async def _ask(
        self,
        questions: Sequence[Question],
        known: Callable[[Question], bool] | None,
        arrived: Callable[[tuple[Question, Any]], None],
    ) -> None:
        """Send the questions; samples of one prompt that follow each other are one request."""
        runs = self._in_runs(questions)
        _followers.set({run[0]: run for run in runs})
        try:
            await super()._ask(
                [run[0] for run in runs],
                None if known is None else lambda first: self._known(known, first),
                lambda arrival: self._several(arrival, arrived),
            )
        except RequestError as error:
            if llama_server.running_server() is None:
                why = llama_server.why_it_ended()
                raise HunchError(
                    f"llama.cpp ended while it answered{f' ({why})' if why else ''}: repeat the command, "
                    "which goes on after the answers that are stored."
                ) from error
            raise

    def _in_runs(self, questions: Sequence[Question]) -> list[list[Question]]:
        """Put samples of one prompt with successive numbers together, at most one per slot."""
        runs: list[list[Question]] = []
        for question in sorted(questions, key=lambda q: (q.verb != "generate", hash(q.request), q.sample)):
            last = runs[-1] if runs else []
            follows = (
                question.verb == "generate"
                and 0 < len(last) < self.settings.slots
                and question == last[-1]._replace(sample=last[-1].sample + 1)
            )
            if follows:
                last.append(question)
            else:
                runs.append([question])
        return runs

    def _known(self, known: Callable[[Question], bool], first: Question) -> bool:
        """Ask of every sample of a request whether it is known, as each has to be counted."""
        answers = [known(question) for question in _followers.get()[first]]
        return all(answers)

    def _several(
        self, arrival: tuple[Question, Any], arrived: Callable[[tuple[Question, Any]], None]
    ) -> None:
        first, answers = arrival
        if first.verb != "generate":
            arrived(arrival)
            return
        for question, answer in zip(_followers.get()[first], answers, strict=True):
            arrived((question, answer))

    def _nothing(self, question: Question) -> Any:
        answer = super()._nothing(question)
        return [answer] * len(_followers.get()[question]) if question.verb == "generate" else answer

    def _prompted(self, prompt: Prompt, sampling: Sampling) -> tuple[str, dict[str, Any]]:
        path, body = super()._prompted(self._quoted(prompt), sampling)
        if body.pop("response_format", None):
            body["grammar"] = grammar(sampling.choices)
            body.pop("stop", None)  # the grammar ends the text
        body.setdefault("max_tokens", sampling.max_tokens)
        return path, body

    def _labelled(self, prompt: Prompt, labels: Sequence[str]) -> Request:
        """Return the request for the log-probabilities of the next token.

        llama.cpp lists none if the token that it draws is only a part of a character, so a grammar forces a
        letter. The log-probabilities are those before the grammar.
        """
        request = super()._labelled(prompt, labels)
        return request._replace(body={**(request.body or {}), "grammar": ANY_LETTER})

    def _quoted(self, prompt: Prompt) -> Prompt:
        """Return a prompt with a space in each text of a control token.

        llama.cpp reads a prompt as one text with control tokens, those of its template among them. So an
        observation that holds one could end its turn and speak as the user or as the model.
        """
        if isinstance(prompt, str):
            return self._broken_up(prompt)
        return tuple(message._replace(content=self._broken_up(message.content)) for message in prompt)

    def _broken_up(self, text: str) -> str:
        if not self._control.pattern:
            return text
        return self._control.sub(lambda mark: f"{mark[0][:1]} {mark[0][1:]}", text)

    def request_for(self, asked: Question, now: Question) -> Request:
        """Return the request for a question and for the samples that follow it."""
        if now.verb != "generate":
            return self.request(now)
        count = len(_followers.get()[asked])
        prompt, how = now.request
        return self._several_texts(prompt, Sampling(*how), now.sample, count)

    def _several_texts(self, prompt: Prompt, sampling: Sampling, sample: int, count: int) -> Request:
        """Return a request for the samples from number ``sample`` on."""
        path, body = self._prompted(prompt, sampling)
        first = int(sample_rng(self.model, prompt, sampling, 0).integers(2**31))
        body |= {"n": count, "seed": (first + sample) % 2**32}
        return Request(path, body, partial(self._read_texts, sampling, count))

    def _read_texts(self, sampling: Sampling, count: int, reply: Any) -> list[str]:
        choices = sorted(reply["choices"], key=lambda choice: int(choice["index"]))
        if [choice["index"] for choice in choices] != list(range(count)):
            raise ValueError("the numbers of texts and samples differ")
        return [self._read_text(sampling, {"choices": [{**choice, "index": 0}]}) for choice in choices]


def _is_within(most: float, prompt: Prompt) -> bool:
    """Return whether a prompt has at most so many characters."""
    return len(text_of(prompt)) <= most


def _read_tokens(reply: Any) -> tuple[Token, ...]:
    """Return tokens; the server writes the piece of one that is no complete character as numbers."""
    return tuple((int(token["id"]), isinstance(token["piece"], str)) for token in reply["tokens"])


def _read_forced(numbers: Sequence[int], reply: Any) -> list[dict[int, float]]:
    """Return log-probabilities at each place of an option: of the likely tokens, and of the forced one."""
    written = one(reply["choices"])["logprobs"]["content"]
    if [entry["id"] for entry in written] != list(numbers):
        raise ValueError("the written tokens are not those of the option")
    return [
        {listed["id"]: min(0.0, float(listed["logprob"])) for listed in (*entry["top_logprobs"], entry)}
        for entry in written
    ]


def _read_first(number: int, reply: Any) -> float:
    """Return the log-probability of a single token that a grammar forced."""
    return _read_forced([number], reply)[0][number]


def _read_listed(number: int, reply: Any) -> float:
    """Return the log-probability of a token from a reply that lists all tokens."""
    (sampled,) = one(reply["choices"])["logprobs"]["content"]
    (entry_of_token,) = [entry for entry in sampled["top_logprobs"] if entry["id"] == number]
    return min(0.0, float(entry_of_token["logprob"]))


def grammar(options: Sequence[str]) -> str:
    """Return a grammar of llama.cpp that allows the options and nothing else.

    For each token llama.cpp tries every alternative that is still open. So options that begin alike share
    their beginning, and part in a rule of their own: ``root ::= "go to the " r1 | "stop"``, ``r1 ::= "bed" |
    "door"``.
    """
    rules: dict[str, str] = {}
    numbers = count(1)
    rests_of = {"root": sorted(set(options))}  # rules to be made, with the texts that each allows
    while rests_of:
        rule, texts = rests_of.popitem()
        alternatives = []
        for _, group in groupby(texts, key=_first_sign):
            alike = list(group)
            start = commonprefix(alike)  # noqa: RUF071 - of texts, character by character
            alternative = f'"{_literal(start)}"'
            if len(alike) > 1:
                name = f"r{next(numbers)}"
                rests_of[name] = [text.removeprefix(start) for text in alike]
                alternative += f" {name}"
            alternatives.append(alternative)
        rules[rule] = " | ".join(alternatives)
    return "\n".join(f"{rule} ::= {alternatives}" for rule, alternatives in rules.items())


def _first_sign(text: str) -> str:
    return text[:1]


def _literal(option: str) -> str:
    """Return an option with the escapes that llama.cpp's grammars have."""
    named = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"}
    return "".join(named.get(sign) or (f"\\x{ord(sign):02X}" if sign < " " else sign) for sign in option)
