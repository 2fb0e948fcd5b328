"""An environment of verifiers for the tests: guess a number, with one hint after each guess."""

import verifiers.v1 as vf

__all__ = ["Guessing", "Numbers"]


class NumberData(vf.TaskData):
    number: int


class NumberTask(vf.Task[NumberData]):
    @vf.metric
    async def turns(self, trace: vf.Trace) -> float:
        return float(trace.num_turns)


class NumbersConfig(vf.TasksetConfig):
    most: int = 8


class Numbers(vf.Taskset[NumberTask, NumbersConfig]):
    INFINITE = True

    def load(self):
        number = 0
        while True:
            prompt = f"Guess a number from 0 to {self.config.most - 1}."
            yield NumberTask(NumberData(prompt=prompt, number=number % self.config.most), self.config.task)
            number += 5


class PlayerConfig(vf.EnvConfig):
    player: vf.AgentConfig = vf.AgentConfig()


class Guessing(vf.Env[PlayerConfig]):
    async def run(self, task, agents):
        number = task.data.number
        solved = False
        async with agents.player.interaction(task) as interaction:
            segment = await interaction.turn()
            for _ in range(4):
                if segment.terminated or solved:
                    break
                guess = segment.last_reply
                if guess == "fail":
                    raise RuntimeError("the game failed")
                solved = guess == str(number)
                if not solved:
                    hint = "higher" if guess.isdecimal() and int(guess) < number else "lower"
                    segment = await interaction.turn(f"The number is {hint}.")
        interaction.trace.record_reward("solved", float(solved))
