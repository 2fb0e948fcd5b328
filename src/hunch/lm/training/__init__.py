"""Models whose weights are trained: one class, for causal models and for those with an encoder and a decoder.

Imports torch and transformers, so it is imported where such a model is made (:func:`hunch.lm.trainable`).
"""

from hunch.lm.training.learner import Learner
from hunch.lm.training.loading import load
from hunch.lm.training.model import Trainable
from hunch.lm.training.outputs import Answer, Judged, Nucleus
from hunch.lm.training.weights import Start
from hunch.lm.training.writing import Written

__all__ = ["Answer", "Judged", "Learner", "Nucleus", "Start", "Trainable", "Written", "load"]
