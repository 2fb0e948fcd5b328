"""Progress display: bars in a terminal, one line in a notebook, a few plain lines elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from typing import Any, Self

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

from hunch.lm.waiting import shown_by
from hunch.printable import printable

PLAIN_SECONDS = 15.0


class Bars:
    """Progress bars, one per label, each followed by the running success rate.

    Args:
        labels: Labels of the bars.
        total: Steps of each bar.
        waiting: Text until the first numbers arrive.
    """

    def __init__(self, labels: Sequence[str], total: int, waiting: str = "") -> None:
        direct: Any = getattr(sys.stderr, "direct", sys.stderr)  # bars move the cursor
        self.console = Console(file=direct)
        self.total, self.waiting = total, waiting
        self.progress = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=12),
            TaskProgressColumn(),
            TextColumn("{task.fields[note]}", markup=False),  # ":m:" in a name is no picture
            TimeRemainingColumn(),
            console=self.console,
            disable=not self.console.is_terminal,
        )
        self.tasks = {
            label: self.progress.add_task(printable(label), total=total, note=waiting) for label in labels
        }
        self.printed = time.monotonic()
        self.lines: dict[str, str] = {}  # what was printed last, by label, where there is no terminal
        self.line = ExitStack()  # while it is open, a wait for a model is a line below the bars
        self.wait = self.progress.add_task("", total=None, note="", visible=False)

    def __enter__(self) -> Self:
        self.progress.start()
        if self.console.is_terminal:
            self.line.enter_context(shown_by(self._show_wait))
        return self

    def _show_wait(self, text: str) -> None:
        """Show how long a model is waited for; nothing if the text is empty."""
        self.progress.update(self.wait, visible=bool(text), note=printable(text))

    def __exit__(self, *_: object) -> None:
        self.line.close()
        with suppress(OSError):  # the terminal may be closed
            self.progress.stop()
        if self.console.is_jupyter:
            print()  # so that later output starts on a new line

    def say(self, text: str) -> None:
        """Print a line above the bars."""
        with suppress(OSError):  # the terminal may be closed
            self.console.print(printable(text), markup=False, highlight=False, soft_wrap=True)

    def show(self, done: dict[str, int], notes: dict[str, str]) -> None:
        """Update the bars."""
        for label, task in self.tasks.items():
            if label in done:
                self.progress.update(task, completed=done[label], note=notes[label])
        if self.console.is_jupyter:
            parts = (f"{x}: {done[x]:,}/{self.total:,} steps {notes[x]}" for x in self.tasks if x in done)
            print("\r" + "; ".join(parts), end="", flush=True)
        elif not self.console.is_terminal and time.monotonic() - self.printed > PLAIN_SECONDS:
            self.printed = time.monotonic()
            lines = {}
            for label in self.tasks:
                note = notes.get(label, self.waiting)
                lines[label] = f"{label}: {done.get(label, 0):,}/{self.total:,} steps {note}".rstrip()
            # Arms that wait or are done stay as they are; if nothing moved, everything is said again.
            changed = [line for label, line in lines.items() if line != self.lines.get(label)]
            self.lines = lines
            for line in changed or lines.values():
                with suppress(OSError):  # nobody may be there to read it
                    self.console.print(line)


class RunProgress(Bars):
    """Progress display of a single run, from the lines of metrics."""

    def __init__(self, label: str, steps: int, waiting: str = "") -> None:
        super().__init__([label], steps, waiting)
        self.label = label

    def update(self, line: dict[str, Any]) -> None:
        """Update the bar with one line of metrics."""
        self.show({self.label: line["step"]}, {self.label: note([line])})


def note(lines: Sequence[dict[str, Any]]) -> str:
    """Return the mean running success rate, the model calls and their cost, as a text.

    In a search for programs the fitness of the best program so far stands first: the mean over the lines.
    """
    if not lines:
        return "loading models, first steps"
    successes = [line["success"] for line in lines if "success" in line]
    success = f"success {sum(successes) / len(successes):.2f}" if successes else "no episode ended"
    calls, cost = (sum(line["usage"].get(name, 0) for line in lines) for name in ("calls", "cost"))
    if any("failed_programs" in line for line in lines):
        fitness = [line["best"] for line in lines if "best" in line]
        best = f"best {sum(fitness) / len(fitness):.4g}" if fitness else "no program ran"
        success = f"{best}, {success}"
    return f"{success}, {int(calls):,} calls" + (f", cost {cost:.4f}" if cost else "")
