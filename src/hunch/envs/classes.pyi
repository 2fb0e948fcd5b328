# fmt: off
# ruff: isort: off
from hunch.envs.base import Outcome as Outcome, TextEnv as TextEnv
from hunch.envs.checker import ContractError as ContractError, check as check
from hunch.envs.design import DesignProblem as DesignProblem
from hunch.envs.reading import Read as Read, Schema as Schema
from hunch.envs.text_wrapper import TextWrapper as TextWrapper, require_text as require_text
from hunch.envs.tools import Tool as Tool, Tools as Tools
from hunch.envs.wrappers import History as History, Pictured as Pictured, Written as Written
