"""Rules that know the worlds of the studies, for ``scripted:<rule>`` (evidence level L0).

:mod:`hunch.lm.rules` finds them through the entry-point group ``hunch.rules``. Some entries add to a rule of
the library what it does not know of the studies.
"""
