# fmt: off
# ruff: isort: off
from hunch import sandbox as sandbox
from hunch.audition.hearing import audition as audition
from hunch.runs.callbacks import Callback as Callback, StopAt as StopAt, Watch as Watch
from hunch.runs.config import Saving as Saving, Streams as Streams
from hunch.runs.evaluations import Evaluation as Evaluation
from hunch.runs.settings_file import read_config as read_config
from hunch.runs.train import evaluate as evaluate, train as train
from hunch.runs.trained import Trained as Trained, load as load
