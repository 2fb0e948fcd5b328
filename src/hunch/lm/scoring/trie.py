"""Token trees: the options of a prompt, with every shared beginning only once."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

Tokens = Sequence[int]
LIKE: Final = 1.25
"""Largest ratio of two lengths that are treated as alike (ours)."""


class Tree(NamedTuple):
    """Tokens to compute in one forward pass, each after its parent, and the options' paths through them.

    Attributes:
        tokens: The tokens; a parent comes before its children.
        parents: The index of each token's predecessor; -1 if that is the prefix.
        paths: For each option, its tokens as pairs (index of the token that predicts it, token).
    """

    tokens: list[int]
    parents: list[int]
    paths: list[list[tuple[int, int]]]

    @property
    def root(self) -> int:
        """Index of the token after which the options begin."""
        return self.paths[0][0][0]

    def depths(self) -> list[int]:
        """Return the number of ancestors of each token."""
        depths = list(range(self._chained()))
        for parent in self.parents[len(depths) :]:
            depths.append(depths[parent] + 1 if parent >= 0 else 0)
        return depths

    def visible(self) -> NDArray[np.bool_]:
        """Return which tokens each token attends to: itself and its ancestors, shape (tokens, tokens)."""
        size, stem = len(self.tokens), self._chained()
        seen = np.eye(size, dtype=bool)
        seen[:stem] = np.tri(stem, size, dtype=bool)
        for index, parent in enumerate(self.parents[stem:], stem):
            if parent >= 0:
                seen[index] |= seen[parent]
        return seen

    def _chained(self) -> int:
        """Return the number of tokens at the beginning of which each follows the one before."""
        odd = np.flatnonzero(np.diff(self.parents, prepend=-2) != 1)
        return int(odd[0]) if len(odd) else len(self.parents)


def chain(tokens: Tokens) -> Tree:
    """Return a tree without branches."""
    return Tree(list(tokens), list(range(-1, len(tokens) - 1)), [])


def grow(stem: Tokens, options: Sequence[Tokens]) -> Tree:
    """Return the tree of a stem and its options; the last token of an option is only predicted.

    Args:
        stem: The end of the prompt, at least one token.
        options: The tokens of each option, at least one each.
    """
    tree = chain(stem)
    nodes: dict[tuple[int, int], int] = {}
    for option in options:
        at = len(stem) - 1
        path = [(at, option[0])]
        for token, following in pairwise(option):
            if (at, token) not in nodes:
                nodes[at, token] = len(tree.tokens)
                tree.tokens.append(token)
                tree.parents.append(at)
            at = nodes[at, token]
            path.append((at, following))
        tree.paths.append(path)
    return tree


def joined(trees: Sequence[Tree]) -> tuple[list[Tree], list[tuple[int, list[int]]]]:
    """Merge each tree whose stem begins another tree's stem into that tree, so that it is computed once.

    Returns:
        The trees, without paths; and for each given tree, the number of the new tree, and the positions of
        the tokens from its root on, counted from the end of the new tree.
    """
    hosts, found = list[Tree](), dict[int, tuple[int, list[int]]]()
    stems = [tree.tokens[: tree.root + 1] for tree in trees]
    for i in sorted(
        range(len(trees)), key=stems.__getitem__, reverse=True
    ):  # what continues a stem comes first
        tree, stem = trees[i], len(stems[i])
        if not hosts or hosts[-1].tokens[:stem] != stems[i]:
            hosts.append(Tree([*stems[i]], tree.parents[:stem], []))
        host = hosts[-1]
        places = [*range(stem), *range(n := len(host.tokens), n + len(tree.tokens) - stem)]
        host.tokens.extend(tree.tokens[stem:])
        host.parents.extend(places[parent] for parent in tree.parents[stem:])
        found[i] = len(hosts) - 1, places[stem - 1 :]
    ends = [len(host.tokens) for host in hosts]
    return hosts, [
        (host, [at - ends[host] for at in own]) for host, own in (found[i] for i in range(len(trees)))
    ]


def alike(lengths: Sequence[int]) -> list[list[int]]:
    """Group rows by length if padding all to the longest would double the work; else return one group."""
    if max(lengths) * len(lengths) < 2 * sum(lengths):
        return [[*range(len(lengths))]]
    groups: list[list[int]] = [[]]
    for row in sorted(range(len(lengths)), key=lengths.__getitem__):
        if groups[-1] and lengths[row] > LIKE * lengths[groups[-1][0]]:
            groups.append([])
        groups[-1].append(row)
    return groups


def split(options: Sequence[Tokens], most: int) -> list[list[int]]:
    """Split options into groups whose trees have at most ``most`` tokens besides the stem.

    Options with the same beginning stay together. An option that is too long forms its own group.

    Returns:
        The indices of each group's options.
    """
    groups: list[list[int]] = [[]]
    seen: set[tuple[int, ...]] = set()
    for index in sorted(range(len(options)), key=lambda i: tuple(options[i])):
        inner = {tuple(options[index][:end]) for end in range(1, len(options[index]))}
        if groups[-1] and len(seen | inner) > most:
            groups.append([])
            seen = set()
        groups[-1].append(index)
        seen |= inner
    return groups
