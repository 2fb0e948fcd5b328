"""The table of methods against the modules it names."""

import dataclasses

import pytest

from hunch import lm, methods
from hunch.core import Agent, UsageError


@pytest.mark.parametrize("method", methods.METHODS.values(), ids=lambda m: m.name)
def test_every_method_builds_an_agent(method):
    model = lm.load("scripted:first" if method.verbs == ("generate",) else "minilm")
    method.check(model)
    agent = method.build(method.config_class(), model)
    assert isinstance(agent, Agent)
    assert type(agent) is getattr(methods, method.agent)
    assert dataclasses.is_dataclass(method.config_class)


def test_unknown_method_names_near_ones():
    with pytest.raises(UsageError, match="dqn-prior"):
        methods.find("dqn-proir")
    with pytest.raises(AttributeError):
        _ = methods.NoSuchAgent
