# hunch_game.py
"""Any environment that ``hunch serve`` serves, as an environment of verifiers::

vf-eval hunch-game --env.taskset.url http://127.0.0.1:8000 -m MODEL --client.base-url URL --no-push
"""

import asyncio
import json

import aiohttp
import verifiers.v1 as vf
from openai import AsyncOpenAI
from verifiers.v1.dialects.chat import message_to_wire

__all__ = ["Chat", "HunchGame", "HunchGames"]

SYSTEM = "You play a text game. Answer with one action, in the words of the game, and nothing else."
WITH_TOOLS = "Solve the task with the tools. When you are done, answer in plain text."


class Session:
    """One connection to ``hunch serve``: the messages of OpenEnv, without its package."""

    def __init__(self, url):
        self.address = f"{url.rstrip('/')}/ws"
        self.answers = asyncio.Queue()

    async def __aenter__(self):
        self.client = aiohttp.ClientSession()
        try:
            self.socket = await self.client.ws_connect(self.address, max_msg_size=0)
        except aiohttp.ClientError as error:
            await self.client.close()
            raise vf.EnvError(f"hunch serve does not answer at {self.address}: {error}") from error
        self.reading = asyncio.create_task(self.read())
        return self

    async def __aexit__(self, *_):
        self.reading.cancel()
        await self.client.close()

    async def read(self):
        """Read all the time: the server's pings are answered here, however long a model thinks."""
        async for message in self.socket:
            self.answers.put_nowait(message.json())
        self.answers.put_nowait({"type": "error", "data": {"message": "the connection was closed"}})

    async def ask(self, kind, **data):
        """Send a reset or a step; return the observation, the reward, and whether the episode is over."""
        await self.socket.send_json({"type": kind, "data": data})
        answer = await self.answers.get()
        if answer["type"] == "error":
            raise vf.EnvError(f"hunch serve says: {answer['data'].get('message')}")
        result = answer["data"]
        return result["observation"], result["reward"] or 0.0, result["done"]


class GameConfig(vf.TasksetConfig):
    url: str = "http://127.0.0.1:8000"
    """Address of hunch serve."""
    episodes: int = 100
    """Number of tasks; each is the seed of an episode."""
    first: int = 0
    """The first seed."""
    actions: bool = True
    """Whether observations list the admissible actions."""
    native: bool = True
    """Whether tools, where the environment has some, are offered in the form of the chat API."""


class GameData(vf.TaskData):
    seed: int
    url: str
    actions: bool
    native: bool
    tools: tuple[dict, ...] = ()
    """Tools whose calls are actions, as the environment names them with its first observation."""


class GameTask(vf.Task[GameData]):
    pass


class HunchGames(vf.Taskset[GameTask, GameConfig]):
    """The seeds of episodes. The first user message is the first observation."""

    def load(self):
        config = self.config
        for seed in range(config.first, config.first + config.episodes):
            given = {"seed": seed, "url": config.url, "actions": config.actions, "native": config.native}
            yield GameTask(GameData(name=f"seed {seed}", system_prompt=SYSTEM, **given), config.task)


class PlayerConfig(vf.EnvConfig):
    player: vf.AgentConfig = vf.AgentConfig(runtime=vf.SubprocessConfig())


class HunchGame(vf.Env[PlayerConfig]):
    """Plays an episode: each reply of the model is an action.

    Each observation is a user message, with its pictures; after calls of tools it is their result.
    """

    async def run(self, task, agents):
        data = task.data
        episode_return = 0.0
        invalid = 0
        async with Session(data.url) as session:
            observation, _, done = await session.ask("reset", seed=data.seed)
            tools = tuple(json.loads(tool) for tool in observation["tools"])
            if tools and data.native:
                offered = {"tools": tools, "system_prompt": WITH_TOOLS}
                task = GameTask(data.model_copy(update=offered), task.config)
            text = f"Your task is to: {observation['task']}\n{self.shown(observation, data)}"
            messages = [user_message(text, observation)]
            async with agents.player.interaction(task) as interaction:
                while not done:
                    segment = await interaction.turn(messages)
                    if segment.terminated:  # a limit of verifiers, such as max_turns
                        break
                    calls = calls_in(segment)
                    action = text_of(calls) if calls else written(segment.last_reply, tools)
                    listed = observation["actions"]
                    observation, reward, done = await session.ask("step", text=action)
                    refused = "Invalid move" in observation["event"]
                    invalid += refused if listed is None else action not in listed
                    episode_return += reward
                    messages = results(calls, observation["text"])
                    if not calls:
                        messages.append(user_message(self.shown(observation, data), observation))
                    elif observation["pictures"]:
                        messages.append(user_message("", observation))
        trace = interaction.trace
        trace.record_reward("episode_return", episode_return)
        trace.record_metric("success", float(observation["success"]))
        trace.record_metric("invalid_actions", float(invalid))

    def shown(self, observation, data):
        """Return the text of an observation, with the admissible actions if they are wanted."""
        if observation["actions"] is None or not data.actions:
            return observation["text"]
        return f"{observation['text']}\nAdmissible actions: {'; '.join(observation['actions'])}"


def user_message(text, observation):
    """Return an observation as a user message: its text, and its pictures as images."""
    if not observation["pictures"]:
        return {"role": "user", "content": text}
    shown = [f"data:image/png;base64,{picture}" for picture in observation["pictures"]]
    images = [{"type": "image_url", "image_url": {"url": url}} for url in shown]
    return {"role": "user", "content": [{"type": "text", "text": text}, *images] if text else images}


def calls_in(segment):
    """Return the calls of tools in the model's last message."""
    replies = [message for message in segment.messages if message.role == "assistant"]
    return (replies[-1].tool_calls or []) if replies else []


def text_of(calls):
    """Return calls as an action of Hunch: an object in JSON, or a list of them."""
    objects = [{"name": call.name, "arguments": call.arguments} for call in calls]
    return json.dumps(objects[0] if len(objects) == 1 else objects)


def written(reply, tools):
    """Return the action in a reply: all of it in an environment of tools, else its first line."""
    if tools:
        return reply
    lines = reply.splitlines() or [""]
    return lines[0].strip().removeprefix(">").strip()


def results(calls, text):
    """Return the messages that answer calls. Hunch answers several in one text, which the first one gets."""
    texts = [text] + ["See the result of the first call."] * (len(calls) - 1)
    return [
        {"role": "tool", "tool_call_id": call.id, "name": call.name, "content": said}
        for call, said in zip(calls, texts, strict=False)
    ]


class ChatConfig(vf.HarnessConfig):
    pass


class Chat(vf.Harness[ChatConfig]):
    """One request to the model for each user message, in this process; the usual harnesses start programs."""

    APPENDS_SYSTEM_PROMPT = True
    SUPPORTS_RESUME = True
    EXECUTES_CODE = False
    NEEDS_CONTAINER = False

    async def launch(self, ctx, trace, runtime, endpoint, secret, mcp_urls, data):
        system, prompt = self.resolve_prompt(data)
        messages = [] if system is None else [{"role": "system", "content": system}]
        if isinstance(prompt, str):
            messages.append({"role": "user", "content": prompt})
        else:
            messages += [message_to_wire(message) for message in prompt]
        async with AsyncOpenAI(base_url=endpoint, api_key=secret, max_retries=0) as client:
            has_tools = isinstance(data, GameData) and data.tools  # verifiers-serve has tasks of others
            tools = {"tools": list(data.tools)} if has_tools else {}
            await client.chat.completions.create(model=ctx.model, messages=messages, **tools)
        return vf.ProgramResult(0, "", "")
