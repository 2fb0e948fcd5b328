"""Models whose weights are trained: one class, for causal models and for those with an encoder and a decoder.

Imports torch and transformers, so it is imported where such a model is made (:func:`hunch.lm.trainable`).
"""

from hunch.lm.training.learner import Learner
from hunch.lm.training.loading import load
from hunch.lm.training.model import Trainable
from hunch.lm.training.outputs import Nucleus, OptionOutputs, TokenOutputs
from hunch.lm.training.weights import Start
from hunch.lm.training.writing import Written

__all__ = [
    "Learner",
    "Nucleus",
    "OptionOutputs",
    "Start",
    "TokenOutputs",
    "Trainable",
    "Written",
    "load",
]
