# ruff: noqa: E501
# fmt: off
# ruff: isort: off
from hunch.lm.answers.cache import Cached as Cached
from hunch.lm.answers.reading import read_option as read_option
from hunch.lm.answers.store import Store as Store
from hunch.lm.backends.sampling import listed_options as listed_options
from hunch.lm.backends.scripted import ScriptedModel as ScriptedModel
from hunch.lm.backends.uniform import UniformModel as UniformModel
from hunch.lm.base import Backend as Backend, LanguageModel as LanguageModel, Normalisation as Normalisation, OptionScores as OptionScores, Verb as Verb
from hunch.lm.budget import Budget as Budget, BudgetError as BudgetError, Ledger as Ledger
from hunch.lm.pictures import picture as picture
from hunch.lm.probe import Description as Description, describe as describe
from hunch.lm.prompts import Message as Message, Prompt as Prompt
from hunch.lm.registry import PER_USER as PER_USER, kinds as kinds, load as load, require as require
from hunch.lm.rules import rule as rule
from hunch.lm.decision import DecisionQuestion as DecisionQuestion
from hunch.lm.scoring.choose import Choice as Choice, choose as choose, decide as decide
from hunch.lm.settings import AskConfig as AskConfig
from hunch.lm.speech import ONE_LINE as ONE_LINE, Sampling as Sampling
from hunch.lm.tuning import trainable as trainable
from hunch.lm.usage import Usage as Usage
