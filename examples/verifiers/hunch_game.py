# hunch_game.py
"""Any environment that ``hunch serve`` serves, as an environment of verifiers::

vf-eval hunch-game --env.taskset.url http://127.0.0.1:8000 -m MODEL --client.base-url URL --no-push
"""

import asyncio

import aiohttp
import verifiers.v1 as vf
from openai import AsyncOpenAI
from verifiers.v1.dialects.chat import message_to_wire

__all__ = ["Chat", "HunchGame", "HunchGames"]

SYSTEM = "You play a text game. Answer with one action, in the words of the game, and nothing else."


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


class GameData(vf.TaskData):
    seed: int
    url: str
    actions: bool


class GameTask(vf.Task[GameData]):
    pass


class HunchGames(vf.Taskset[GameTask, GameConfig]):
    """The seeds of episodes. The first user message is the first observation."""

    def load(self):
        config = self.config
        for seed in range(config.first, config.first + config.episodes):
            given = {"seed": seed, "url": config.url, "actions": config.actions}
            yield GameTask(GameData(name=f"seed {seed}", system_prompt=SYSTEM, **given), config.task)


class PlayerConfig(vf.EnvConfig):
    player: vf.AgentConfig = vf.AgentConfig(runtime=vf.SubprocessConfig())


class HunchGame(vf.Env[PlayerConfig]):
    """Plays an episode: each reply of the model is an action, each observation a user message."""

    async def run(self, task, agents):
        data = task.data
        episode_return = 0.0
        invalid = 0
        async with Session(data.url) as session:
            observation, _, done = await session.ask("reset", seed=data.seed)
            text = f"Your task is to: {observation['task']}\n{self.shown(observation, data)}"
            async with agents.player.interaction(task) as interaction:
                while not done:
                    segment = await interaction.turn(text)
                    if segment.terminated:  # a limit of verifiers, such as max_turns
                        break
                    lines = segment.last_reply.splitlines() or [""]
                    action = lines[0].strip().removeprefix(">").strip()
                    listed = observation["actions"]
                    invalid += listed is not None and action not in listed
                    observation, reward, done = await session.ask("step", text=action)
                    episode_return += reward
                    text = self.shown(observation, data)
        trace = interaction.trace
        trace.record_reward("episode_return", episode_return)
        trace.record_metric("success", float(observation["success"]))
        trace.record_metric("invalid_actions", float(invalid))

    def shown(self, observation, data):
        """Return the text of an observation, with the admissible actions if they are wanted."""
        if observation["actions"] is None or not data.actions:
            return observation["text"]
        return f"{observation['text']}\nAdmissible actions: {'; '.join(observation['actions'])}"


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
            await client.chat.completions.create(model=ctx.model, messages=messages)
        return vf.ProgramResult(0, "", "")
