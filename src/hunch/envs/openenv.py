"""Any OpenEnv server as a text environment (extra ``openenv``; tested with openenv 0.10.0)."""

from __future__ import annotations

import json
import math
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from typing import Any, ClassVar, Final, NamedTuple, Self
from urllib.error import HTTPError
from urllib.request import HTTPRedirectHandler, build_opener

from hunch.admitted import require_server
from hunch.core import HunchError, UsageError
from hunch.envs.base import Outcome, TextEnv
from hunch.envs.offers import Offer
from hunch.extras import library
from hunch.ranges import PositiveFloat, PositiveInt

SHOWN = ("text", "observation", "message", "prompt", "content", "response", "result", "output")
"""Fields of an observation that may hold its text, the most likely first."""
FIELDS = ("task", "success", "event", "truncated")
"""Fields of an observation to which the contract gives a meaning."""
OURS = {"text", "actions", *FIELDS}
"""Fields of every observation of Hunch's own server (:mod:`hunch.ext.openenv`)."""
LARGEST: Final = 8_000_000
"""Bytes of the largest answer that is read."""
CLOSING: Final = 1.0
"""Seconds in which a connection may end."""


class Answer(NamedTuple):
    """A checked answer to a reset or an action."""

    observation: Mapping[str, Any]
    reward: float
    done: bool


class Connection:
    """A session with a server of OpenEnv, with a limit on the time and size of each answer.

    A server that sends it elsewhere is not followed: the other server may be one that nobody named.

    Args:
        url: Address of the server.
        seconds: Time limit for connecting, and for each answer.

    Raises:
        OSError: if there is no such server.
        ValueError: if it is none.
    """

    def __init__(self, url: str, seconds: float) -> None:
        sockets = library("websockets.sync.client", "An OpenEnv server needs openenv", "openenv")
        from websockets.exceptions import InvalidStatus, WebSocketException

        class Direct(sockets.ClientConnection):  # type: ignore[misc,name-defined]
            """A connection whose refused handshake is not taken as a redirection."""

            def handshake(self, *args: Any, **named: Any) -> None:
                """Open the session."""
                try:
                    super().handshake(*args, **named)
                except InvalidStatus as error:
                    raise ValueError(f"it answers with the status {error.response.status_code}") from error

        self.errors: type[Exception] = WebSocketException
        self.seconds, self.stack = seconds, ExitStack()
        scheme, colon, rest = url.partition("://")
        address = f"{'wss' if scheme == 'https' else 'ws'}://{rest}" if colon else f"ws://{url}"
        try:
            connecting = sockets.connect(
                f"{address}/ws",
                create_connection=Direct,
                open_timeout=seconds,
                close_timeout=CLOSING,
                max_size=LARGEST,
            )
            self.socket = self.stack.enter_context(connecting)
        except WebSocketException as error:
            raise ValueError(str(error)) from error

    def ask(self, kind: str, data: Mapping[str, Any]) -> Answer:
        """Send a message of a kind, and return the answer.

        Raises:
            OSError: if the server is gone or late.
            ValueError: if its answer is an error, or no answer.
        """
        try:
            self._require_silence()
            self.socket.send(json.dumps({"type": kind, "data": dict(data)}))
            received = self.socket.recv(timeout=self.seconds)
        except self.errors as error:
            raise ValueError(str(error)) from error
        return read_answer(received)

    def _require_silence(self) -> None:
        """Check that no message waits that nobody asked for: it would count as the answer to the next one.

        Raises:
            ValueError: if one does.
        """
        with suppress(TimeoutError):
            self.socket.recv(timeout=0)
            raise ValueError("it sends answers that nobody asked for")

    def close(self) -> None:
        """End the session."""
        with suppress(OSError, self.errors):  # the server may be gone
            self.socket.send(json.dumps({"type": "close"}))
        self.stack.close()


def read_answer(received: str | bytes) -> Answer:
    """Return the contents of a server's message after checking their types.

    Raises:
        ValueError: if the message is an error, or not of this form.
    """
    message = _json(received)
    data = message.get("data") if isinstance(message, dict) else None
    if not isinstance(message, dict) or not isinstance(data, dict):
        raise ValueError("its answer is not an object with data")
    kind = message.get("type", "observation")
    if kind == "error":
        raise ValueError(f"it says {str(data.get('message'))[:500]}")
    if kind != "observation" or "observation" not in data:
        raise ValueError(f"its answer is no observation, but of the type {str(kind)[:100]!r}")
    observation, done = data["observation"], data.get("done")
    if not isinstance(observation, dict):
        raise ValueError("it uses another version of OpenEnv, whose observation is no object")
    if done is not None and not isinstance(done, bool):
        raise ValueError("done is not true or false")
    return Answer(observation, _number(data.get("reward")), bool(done))


def _json(received: str | bytes) -> Any:
    """Return the value of a JSON text; halves of characters, which nothing can print, are replaced.

    Raises:
        ValueError: if it is not JSON.
    """
    try:
        value = json.loads(received)
        return json.loads(json.dumps(value, ensure_ascii=False).encode("utf-8", "replace"))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"its answer is not JSON ({error})") from error


def _number(reward: Any) -> float:
    if reward is None:
        return 0.0
    if not isinstance(reward, int | float) or (isinstance(reward, int) and abs(reward) > 1 << 1000):
        raise ValueError("the reward is not a number")
    if not math.isfinite(reward):
        raise ValueError("the reward is not finite")
    return float(reward)


class _Direct(HTTPRedirectHandler):
    """Follows no redirection."""

    def redirect_request(self, *_: Any) -> None:
        """Make the redirection an error."""
        return


def _fetched(url: str, seconds: float) -> Any:
    """Return the JSON value at an address.

    The whole takes at most ``seconds``. A time limit of the socket begins anew with each byte, so that
    another thread waits for them.

    Raises:
        OSError: if nothing answers in time.
        ValueError: if the answer is not JSON, or too large.
    """
    answers: list[bytes | Exception] = []

    def fetch() -> None:
        try:
            with build_opener(_Direct).open(url, timeout=seconds) as answer:
                answers.append(answer.read(LARGEST + 1))
        except Exception as error:  # http.client raises many; the waiting thread raises them again
            answers.append(error)

    thread = threading.Thread(target=fetch, daemon=True)
    thread.start()
    thread.join(seconds)
    if not answers:
        raise TimeoutError(f"timed out after {seconds:g} seconds")
    if isinstance(answers[0], HTTPError):
        raise ValueError(f"it answers with the status {answers[0].code}")
    if isinstance(answers[0], Exception):
        raise answers[0] if isinstance(answers[0], OSError) else ValueError(str(answers[0])) from answers[0]
    if len(answers[0]) > LARGEST:
        raise ValueError(f"its answer has more than {LARGEST:,} bytes")
    return _json(answers[0])


class OpenEnv(TextEnv):
    """An environment on a server of OpenEnv.

    Any text is an action, except where a server of Hunch's own (``hunch serve``) lists actions: these are the
    admissible ones here, too. The connection is a session of the server. Servers use the contract's names for
    other things (``success`` of a command, a ``task`` as a number), so that of an observation's fields only
    those go on that ``info`` names; a server of Hunch's own (``hunch serve``) means what the contract means.
    Whether the same seed gives the same episode depends on the server; a resumed run fails with a message
    if it does not.

    Args:
        url: Address of the server, such as ``http://127.0.0.1:8000``; without a scheme it is http.
        action: Field of an action that holds the text. Default: the only required field.
        text: Field of an observation to show. Default: ``text``, ``observation``, ``message`` or similar, or
            else all fields as JSON.
        task: The task in a sentence.
        info: Fields of an observation to take over, separated by commas, out of ``task``, ``success``,
            ``event`` and ``truncated``. Without ``success``, a positive reward at the end is one.
        listed: False if any text is to be an action, although a server of Hunch's own lists actions.
        seconds: Time limit in seconds for each answer of the server.
        max_steps: Step limit of an episode, in addition to that of the server.
        render_mode: ``"ansi"`` or none.

    Raises:
        UsageError: if no server answers at the address, it is no OpenEnv server, or ``info`` names another
            field.
    """

    metadata: ClassVar[dict[str, Any]] = {"render_modes": ["ansi"], "history": 0, "reproducible": False}  # type: ignore[misc]
    offers: Sequence[Offer] | None = ("free_text", "events")  # type: ignore[misc]

    def __init__(
        self,
        url: str,
        *,
        action: str = "",
        text: str = "",
        task: str = "",
        info: str = "",
        listed: bool = True,
        seconds: PositiveFloat = 60.0,
        max_steps: PositiveInt = 1000,
        render_mode: str | None = None,
    ) -> None:
        super().__init__(max_steps, render_mode)
        if "://" not in url:
            url = f"http://{url}"
        require_server(url, "An agent's actions")
        self.url, self.text, self.given_task, self.seconds = url.rstrip("/"), text, task, seconds
        self.passed = tuple(filter(None, (name.strip() for name in info.split(","))))
        if unknown := sorted({*self.passed} - {*FIELDS}):
            raise UsageError(f"info takes {', '.join(FIELDS)}, separated by commas, not {unknown[0]!r}.")
        self._client: Connection | None = None
        self._ours = self._listed = False
        self._answered: Mapping[str, Any] = {}  # the last observation of the server
        self.action = action or self._required()
        self._listed = listed and self._lists()
        self.offers = ("events",) if self._listed else ("free_text", "events")

    def _required(self) -> str:
        """Return the field of an action that has to be given, and learn whether the server is one of ours."""
        try:
            schemas = _fetched(f"{self.url}/schema", self.seconds)
            action = _objects(schemas, "action")
            properties = _objects(schemas, "action", "properties") if "properties" in action else {}
            required = action.get("required", [])
            if not isinstance(required, list) or not all(isinstance(name, str) for name in required):
                raise ValueError("its schema of actions is none")
            shown = _objects(schemas, "observation", "properties") if "observation" in schemas else {}
            self._ours = shown.keys() >= OURS
        except (OSError, ValueError) as error:
            raise UsageError(f"No OpenEnv server answers at {self.url}: {_said(error)}.") from error
        kind = properties.get(required[0]) if len(required) == 1 else None
        if not isinstance(kind, dict) or kind.get("type") != "string":
            named = ", ".join(properties)[:500] or "nothing"
            raise UsageError(
                f"An action of {self.url} is not a single text: name one of its fields ({named}) as action."
            )
        return str(required[0])

    def _lists(self) -> bool:
        """Return whether the server lists actions: one of ours is asked in a session that is closed again."""
        if not self._ours:
            return False
        try:
            self._asked: dict[str, int | None] = {"seed": 0}
            self._begin({})
            return self._answered.get("actions") is not None
        finally:
            self.close()

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[str, dict[str, Any]]:
        """Begin an episode on the server, which gets the seed and the options."""
        self._asked = {"seed": seed, **(options or {})}
        return super().reset(seed=seed, options=options)

    def _begin(self, options: Mapping[str, Any]) -> Outcome:
        given = {name: value for name, value in self._asked.items() if value is not None}
        return self._read(self._called(lambda: self._connected().ask("reset", given)))

    def _connected(self) -> Connection:
        if self._client is None:
            self._client = Connection(self.url, self.seconds)
        return self._client

    def _move(self, action: str) -> Outcome:
        return self._read(self._called(lambda: self._connected().ask("step", {self.action: action})))

    def _called(self, call: Callable[[], Answer]) -> Answer:
        """Call the server; one that is gone, late, or says that it cannot is named."""
        try:
            return call()
        except (OSError, ValueError) as error:
            self.close()
            late = isinstance(error, TimeoutError) and f"no answer within {self.seconds:g} seconds"
            raise HunchError(f"The OpenEnv server at {self.url} failed: {late or _said(error)}.") from error

    def _read(self, answer: Answer) -> Outcome:
        shown = answer.observation
        self._answered = shown
        ours = shown.keys() >= OURS
        read_fields = {
            name: shown[name] for name in FIELDS if name in shown and (ours or name in self.passed)
        }
        self.task = self.given_task or self._words(read_fields, "task")
        actions = self._actions(shown) if self._listed else None
        if self._listed and actions is None and not answer.done:
            raise self._wrong("it lists no actions any more")
        late = answer.done and self._flag(read_fields, "truncated", False)
        success = self._flag(read_fields, "success", answer.done and answer.reward > 0)
        return Outcome(
            self._text(shown),
            actions,
            answer.reward,
            answer.done and not late,
            success,
            late,
            self._words(read_fields, "event"),
        )

    def _flag(self, values: Mapping[str, Any], name: str, default: bool) -> bool:
        value = values.get(name)
        if value is not None and not isinstance(value, bool):
            raise self._wrong(f"{name} is {str(value)[:100]!r}, not true or false")
        return default if value is None else value

    def _words(self, values: Mapping[str, Any], name: str) -> str:
        value = values.get(name)
        if value is not None and not isinstance(value, str | int | float):
            raise self._wrong(f"{name} is not a text")
        return "" if value is None else str(value)

    def _actions(self, shown: Mapping[str, Any]) -> tuple[str, ...] | None:
        listed = shown.get("actions")
        if listed is None:
            return None
        texts = isinstance(listed, list) and all(isinstance(text, str) and text for text in listed)
        if not texts or len({*listed}) < len(listed):
            raise self._wrong("its actions are not a list of different texts")
        return tuple(listed)

    def _wrong(self, problem: str) -> HunchError:
        self.close()
        return HunchError(f"The OpenEnv server at {self.url} failed: {problem}.")

    def _text(self, shown: Mapping[str, Any]) -> str:
        if self.text and self.text not in shown:
            raise UsageError(
                f"An observation of {self.url} has no field {self.text!r}: it has {', '.join(shown)}."
            )
        field = self.text or next((name for name in SHOWN if isinstance(shown.get(name), str)), "")
        value = shown[field] if field else dict(shown)
        return value if isinstance(value, str) else json.dumps(value, sort_keys=True)

    def close(self) -> None:
        """End the session with the server, and with it the episode."""
        self._running = False
        client, self._client = self._client, None
        if client is not None:
            client.close()

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        if self._running:
            raise UsageError("An episode on a server cannot be copied: copy between episodes.")
        client, self._client = self._client, None
        try:
            return super().__deepcopy__(memo)
        finally:
            self._client = client


def _objects(schemas: Any, *path: str) -> dict[str, Any]:
    """Return an object within a schema.

    Raises:
        ValueError: if there is none.
    """
    for name in path:
        schemas = schemas.get(name) if isinstance(schemas, dict) else None
    if not isinstance(schemas, dict):
        raise ValueError(f"it describes no {' '.join(reversed(path))}")
    return schemas


def _said(error: Exception) -> str:
    reason = getattr(error, "reason", error)
    return " ".join(str(reason).split()).rstrip(".") or type(error).__name__
