# verifiers_served.py
"""Serves an environment of verifiers to Hunch, by the protocol of ``hunch serve``::

    verifiers-serve TASKSET --port 8001 [the options of vf-eval, such as --env.taskset.game Wordle-v0]
    hunch run zero-shot --env openenv:http://127.0.0.1:8001 --lm MODEL --steps 100

Whoever plays is the model of verifiers: what verifiers would send to a model is the observation, the reply is
the action, and the episode's reward comes with its last step.
"""

import asyncio
import contextlib
import sys
import time
import uuid

import verifiers.v1 as vf
from aiohttp import WSMsgType, web
from pydantic import Field, SerializeAsAny, model_validator
from pydantic_config import BaseConfig, cli
from verifiers.v1.cli.resolve import narrow_config, plugin_errors, with_positional_taskset
from verifiers.v1.configs.cli.env import narrowed_env_annotation, resolve_env_field
from verifiers.v1.configs.env import agent_config_fields

HARNESS = "hunch-game"  # the chat loop of hunch_game.py, which starts no programs
FIELDS = {"text": "string", "task": "string", "success": "boolean", "truncated": "boolean", "event": "string"}


class ServeConfig(BaseConfig):
    """An environment of verifiers, and the address. Every option of vf-eval's ``--env`` is one here."""

    env: SerializeAsAny[vf.EnvConfig] = vf.SingleAgentEnvConfig()
    host: str = "127.0.0.1"
    """Address to listen on; there is no password."""
    port: int = Field(8001, ge=0, le=65535)
    """Port to listen on."""
    task: str = ""
    """The task in a sentence, for the agent."""
    tasks: int = Field(1000, ge=1)
    """Number of tasks that are played; a seed beyond counts round."""
    solved: float = 1.0
    """The reward from which on an episode counts as solved."""

    @model_validator(mode="before")
    @classmethod
    def _resolve_env(cls, data):
        return resolve_env_field(data, narrowed_env_annotation(cls))


class Game:
    """One episode at a time for one connection; verifiers asks it as it would ask a model."""

    def __init__(self, server):
        self.server = server
        self.name = uuid.uuid4().hex  # the model that verifiers asks for in this session
        self.asked = asyncio.Queue()  # what verifiers sends to the model
        self.reply = None  # the future that waits for the action
        self.episode = None  # the running task

    async def reset(self, seed=None, **_):
        """Begin the episode of a seed: the task with this number, counted round."""
        await self.close()
        task = self.server.task_of(seed)
        client = vf.EvalClientConfig(base_url=self.server.address + "/v1", api_key_var="")
        context = vf.ModelContext(model=self.name, client=client)
        self.asked = asyncio.Queue()
        self.episode = asyncio.create_task(self.server.env.run_episode(task, context))
        return await self.following()

    async def step(self, text):
        """Answer verifiers with the text, and wait for what follows."""
        if self.reply is None:
            raise ValueError("No episode is running: call reset before step.")
        reply, self.reply = self.reply, None
        reply.set_result(text)
        return await self.following()

    async def following(self):
        """Return the next observation: the message to the model, or the end of the episode."""
        asked = asyncio.create_task(self.asked.get())
        await asyncio.wait({asked, self.episode}, return_when=asyncio.FIRST_COMPLETED)
        if asked.done():
            text, self.reply = asked.result()
            return self.observed(text)
        asked.cancel()
        episode = await self.episode
        if episode.errors or not episode.traces:
            raise ValueError(f"verifiers says: {'; '.join(error.message for error in episode.errors)}")
        trace = episode.traces[0]
        if trace.errors:
            raise ValueError(f"verifiers says: {'; '.join(error.message for error in trace.errors)}")
        figures = [f"{name} {reward.value:g}" for name, reward in trace.rewards.items() if reward]
        figures += [f"{name} {value:g}" for name, value in trace.metrics.items() if value is not None]
        return self.observed("The episode is over.", trace.reward, True, ", ".join(figures))

    def observed(self, text, reward=0.0, done=False, event=""):
        """Return a result with the fields of ``hunch serve``. Any text is an action."""
        shown = {"text": text, "task": self.server.config.task, "actions": None, "event": event}
        shown["success"] = done and reward >= self.server.config.solved
        shown["truncated"] = False
        return {"observation": shown, "reward": reward, "done": done}

    async def close(self):
        """End the running episode."""
        self.reply = None
        if self.episode is not None:
            self.episode.cancel()
            await asyncio.wait({self.episode})
            self.episode = None


class Served:
    """The web server: sessions at /ws, and the model of all of them at /v1."""

    def __init__(self, config):
        for name, agent in agent_config_fields(config.env).items():
            fields = {} if "runtime" in agent.model_fields_set else {"runtime": vf.SubprocessConfig()}
            if agent.harness is None:
                fields["harness"] = vf.harness_config_type(HARNESS)(id=HARNESS)
            setattr(config.env, name, agent.model_copy(update=fields))
        self.config = config
        self.env = vf.load_environment(config.env)
        self.tasks = []
        self.more = iter(self.env.taskset.take(config.tasks))
        self.games = {}
        self.address = ""
        self.resets = 0

    def task_of(self, seed):
        """Return the task with this number, counted round."""
        number = (self.resets if seed is None else seed) % self.config.tasks
        self.resets += 1
        while len(self.tasks) <= number:
            task = next(self.more, None)
            if task is None:  # the taskset has fewer
                break
            self.tasks.append(task)
        return self.tasks[number % len(self.tasks)]

    async def session(self, request):
        """Answer the resets and steps of one connection."""
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        game = Game(self)
        self.games[game.name] = game
        try:
            async for message in socket:
                if message.type != WSMsgType.TEXT:
                    break
                asked = message.json()
                kind, data = asked.get("type"), asked.get("data", {})
                if kind == "close":
                    break
                try:
                    answer = await (game.reset(**data) if kind == "reset" else game.step(**data))
                    await socket.send_json({"type": "observation", "data": answer})
                except Exception as error:  # whatever the environment raises, the client is told
                    said = f"{type(error).__name__}: {error}"
                    await socket.send_json({"type": "error", "data": {"message": said}})
        finally:
            await game.close()
            del self.games[game.name]
        return socket

    async def completion(self, request):
        """Hand the request of verifiers to its session, and return the action as the model's reply."""
        body = await request.json()
        game = self.games.get(body["model"])
        if game is None:
            return web.json_response({"error": {"message": "this session has ended"}}, status=404)
        reply = asyncio.get_running_loop().create_future()
        await game.asked.put((new_text(body["messages"]), reply))
        message = {"role": "assistant", "content": await reply}
        choice = {"index": 0, "finish_reason": "stop", "message": message}
        head = {"id": uuid.uuid4().hex, "object": "chat.completion", "created": int(time.time())}
        return web.json_response({**head, "model": game.name, "choices": [choice]})

    async def schema(self, _request):
        """Describe actions and observations, as OpenEnv does."""
        action = {"required": ["text"], "properties": {"text": {"type": "string"}}}
        observation = {
            "properties": {name: {"type": kind} for name, kind in FIELDS.items()} | {"actions": {}}
        }
        return web.json_response({"action": action, "observation": observation})

    async def run(self):
        """Serve until Ctrl-C."""
        app = web.Application(client_max_size=2**24)
        app.add_routes(
            [
                web.get("/ws", self.session),
                web.get("/schema", self.schema),
                web.post("/v1/chat/completions", self.completion),
            ]
        )
        runner = web.AppRunner(app)
        await runner.setup()
        site = web.TCPSite(runner, self.config.host, self.config.port)
        await site.start()
        host, port = runner.addresses[0][:2]
        self.address = f"http://{host}:{port}"
        async with self.env.serving():
            name = self.config.env.taskset.id
            print(f"{name} is at {self.address} (--env openenv:{self.address}); Ctrl-C ends it.", flush=True)
            await asyncio.Event().wait()


def new_text(messages):
    """Return what the model has not answered yet, as one text: the agent remembers the rest itself."""
    last = max((i for i, message in enumerate(messages) if message["role"] == "assistant"), default=-1)
    texts = []
    for message in messages[last + 1 :]:
        content = message["content"]
        if not isinstance(content, str):  # parts, such as pictures: their texts
            content = "\n".join(part.get("text", "") for part in content)
        texts.append(content)
    return "\n\n".join(texts)


def main():
    """Read the command line, and serve."""
    arguments = with_positional_taskset(sys.argv[1:])
    with plugin_errors():
        config_type = narrow_config(ServeConfig, arguments)
        sys.argv = [sys.argv[0], *arguments]
        served = Served(cli(config_type))
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(served.run())


if __name__ == "__main__":
    main()
