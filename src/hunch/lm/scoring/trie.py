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
        size = len(self.tokens)
        chained = self._chained()
        visible = np.eye(size, dtype=bool)
        visible[:chained] = np.tri(chained, size, dtype=bool)  # a chain sees all before it
        for index, parent in enumerate(self.parents[chained:], chained):
            if parent >= 0:
                visible[index] |= visible[parent]
        return visible

    def _chained(self) -> int:
        """Return the number of tokens at the beginning of which each follows the one before."""
        breaks = np.flatnonzero(np.diff(self.parents, prepend=-2) != 1)
        return int(breaks[0]) if len(breaks) else len(self.parents)


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
    nodes: dict[tuple[int, int], int] = {}  # the node of a token, by its parent and the token
    for option in options:
        node = len(stem) - 1
        path = [(node, option[0])]
        for token, following in pairwise(option):
            if (node, token) not in nodes:
                nodes[node, token] = len(tree.tokens)
                tree.tokens.append(token)
                tree.parents.append(node)
            node = nodes[node, token]
            path.append((node, following))
        tree.paths.append(path)
    return tree


def joined(trees: Sequence[Tree]) -> tuple[list[Tree], list[tuple[int, list[int]]]]:
    """Merge each tree whose stem begins another tree's stem into that tree, so that it is computed once.

    Returns:
        The merged trees, without paths; and for each given tree, the number of the merged one, and the
        positions of its tokens from its root on, counted from the end of the merged one.
    """
    stems = [tree.tokens[: tree.root + 1] for tree in trees]
    merged: list[Tree] = []
    positions: dict[int, tuple[int, list[int]]] = {}  # of each given tree, counted from the beginning
    # In descending order a stem comes before all that it begins with, and right after those that begin so.
    for i in sorted(range(len(trees)), key=stems.__getitem__, reverse=True):
        tree = trees[i]
        length = len(stems[i])
        if not merged or merged[-1].tokens[:length] != stems[i]:
            merged.append(Tree(list(stems[i]), tree.parents[:length], []))
        host = merged[-1]
        size = len(host.tokens)
        branches = tree.tokens[length:]  # the stem is there already
        place = [*range(length), *range(size, size + len(branches))]  # of each token of the tree in the host
        host.tokens.extend(branches)
        host.parents.extend(place[parent] for parent in tree.parents[length:])
        positions[i] = len(merged) - 1, place[length - 1 :]

    from_end: list[tuple[int, list[int]]] = []
    for i in range(len(trees)):
        number, places = positions[i]
        size = len(merged[number].tokens)
        from_end.append((number, [place - size for place in places]))
    return merged, from_end


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
    nodes: set[tuple[int, ...]] = set()  # of the tree of the last group: each beginning of an option
    for index in sorted(range(len(options)), key=lambda i: tuple(options[i])):
        beginnings = {tuple(options[index][:end]) for end in range(1, len(options[index]))}
        if groups[-1] and len(nodes | beginnings) > most:
            groups.append([])
            nodes = set()
        groups[-1].append(index)
        nodes |= beginnings
    return groups
