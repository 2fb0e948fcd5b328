"""Any OpenEnv server as a text environment (extra ``openenv``; tested with openenv 0.10.0)."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Self
from urllib.request import urlopen

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


class OpenEnv(TextEnv):
    """An environment on a server of OpenEnv.

    Any text is an action, except where a server of Hunch's own (``hunch serve``) lists actions: these are the
    admissible ones here, too. The connection is a session of the server. Servers use the contract's names for
    other things (``success`` of a command, a ``task`` as a number), so that of an observation's fields only
    those go on that ``info`` names; a server of Hunch's own (``hunch serve``) means what the contract means.
    Whether the same seed gives the same episode depends on the server; a resumed run fails with a message
    if it does not.

    Args:
        url: Address of the server, such as ``http://127.0.0.1:8000``.
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
        self.url, self.text, self.given_task, self.seconds = url.rstrip("/"), text, task, seconds
        self.passed = tuple(filter(None, (name.strip() for name in info.split(","))))
        if unknown := sorted({*self.passed} - {*FIELDS}):
            raise UsageError(f"info takes {', '.join(FIELDS)}, separated by commas, not {unknown[0]!r}.")
        self._client: Any = None
        self._ours = self._listed = False
        self._answered: Mapping[str, Any] = {}  # the last observation of the server
        self.action = action or self._required()
        self._listed = listed and self._lists()
        self.offers = ("events",) if self._listed else ("free_text", "events")

    def _required(self) -> str:
        """Return the field of an action that has to be given, and learn whether the server is one of ours."""
        try:
            with urlopen(f"{self.url}/schema", timeout=self.seconds) as answer:
                schemas = json.load(answer)
            schema = schemas["action"]
            required = list(schema.get("required", ()))
            self._ours = schemas.get("observation", {}).get("properties", {}).keys() >= OURS
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise UsageError(f"No OpenEnv server answers at {self.url}: {_said(error)}.") from error
        if len(required) != 1 or schema["properties"][required[0]].get("type") != "string":
            named = ", ".join(schema.get("properties", {})) or "nothing"
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
        if self._client is None:
            client = library("openenv", "An OpenEnv server needs openenv", "openenv").GenericEnvClient
            self._client = client(
                self.url, connect_timeout_s=self.seconds, message_timeout_s=self.seconds
            ).sync()
            self._called(self._client.connect)
        given = {name: value for name, value in self._asked.items() if value is not None}
        outcome = self._read(self._called(lambda: self._client.reset(**given)))
        return outcome

    def _move(self, action: str) -> Outcome:
        return self._read(self._called(lambda: self._client.step({self.action: action})))

    def _called(self, call: Callable[[], Any]) -> Any:
        """Call the server; one that is gone, late, or says that it cannot is named."""
        try:
            return call()
        except (OSError, TimeoutError, RuntimeError, ValueError) as error:
            self.close()
            late = isinstance(error, TimeoutError) and f"no answer within {self.seconds:g} seconds"
            raise HunchError(f"The OpenEnv server at {self.url} failed: {late or _said(error)}.") from error

    def _read(self, result: Any) -> Outcome:
        shown = result.observation
        if not isinstance(shown, dict):
            raise HunchError(f"The server at {self.url} uses another version of OpenEnv: it sent {shown!r}.")
        self._answered = shown
        ours = shown.keys() >= OURS
        told = {name: shown[name] for name in FIELDS if name in shown and (ours or name in self.passed)}
        self.task = self.given_task or str(told.get("task") or "")
        reward = float(result.reward or 0.0)
        listed = shown.get("actions") if self._listed else None
        actions = None if listed is None else tuple(map(str, listed))
        late = bool(result.done and told.get("truncated"))
        success = bool(told.get("success", result.done and reward > 0))
        return Outcome(
            self._text(shown),
            actions,
            reward,
            bool(result.done) and not late,
            success,
            late,
            str(told.get("event") or ""),
        )

    def _text(self, shown: Mapping[str, Any]) -> str:
        if self.text and self.text not in shown:
            raise UsageError(
                f"An observation of {self.url} has no field {self.text!r}: it has {', '.join(shown)}."
            )
        field = self.text or next((name for name in SHOWN if isinstance(shown.get(name), str)), "")
        return str(shown[field]) if field else json.dumps(shown, sort_keys=True)

    def close(self) -> None:
        """End the session with the server."""
        client, self._client = self._client, None
        if client is not None:
            try:
                client.close()
            except (OSError, RuntimeError):
                return  # the server is gone

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        if self._running:
            raise UsageError("An episode on a server cannot be copied: copy between episodes.")
        client, self._client = self._client, None
        try:
            return super().__deepcopy__(memo)
        finally:
            self._client = client


def _said(error: Exception) -> str:
    reason = getattr(error, "reason", error)
    return " ".join(str(reason).split()).rstrip(".") or type(error).__name__
