"""A taskset of verifiers with one prompt and one answer, which a function of the task scores."""

import verifiers.v1 as vf

__all__ = ["Words"]


class WordData(vf.TaskData):
    word: str


class WordTask(vf.Task[WordData]):
    @vf.reward
    async def letters(self, trace: vf.Trace) -> float:
        return float(trace.last_reply == self.data.word[::-1])


class Words(vf.Taskset[WordTask, vf.TasksetConfig]):
    def load(self):
        for word in ("lamp", "apple", "shelf"):
            yield WordTask(WordData(prompt=f"Reverse the word {word}.", word=word), self.config.task)
