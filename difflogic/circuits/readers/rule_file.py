"""Reader of Golly's `.rule` files: a table of transitions, of which the first match counts, or a decision tree.

Both become a decision diagram, in which each node branches on the state of one cell and equal nodes are merged.
Therefore the work grows with the file's structure, not with the number of neighbourhoods.
Source of the format: Golly's help, *File formats*, "Rule files".
"""

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import permutations
from pathlib import Path

from difflogic.core.rules import MOST_STATES
from difflogic.errors import CircuitError
from difflogic.model import netlist_json

CELLS = {
    "moore": ("Moore", (4, 1, 2, 5, 8, 7, 6, 3, 0)),
    "von-neumann": ("vonNeumann", (4, 1, 5, 7, 3)),
    "hex": ("hexagonal", (4, 1, 5, 8, 7, 3, 0)),
    "line": ("oneDimensional", (4, 3, 5)),
}
"""Golly's name of each neighbourhood, and patch positions in a table's order: centre, north, then clockwise."""
TREE_CELLS = {8: (0, 2, 6, 8, 1, 3, 5, 7, 4), 4: (1, 3, 5, 7, 4)}
"""Mapping from the number of neighbours to patch positions in the order in which a tree branches on them."""
FOLDERS = ("~/.golly/Rules", "/usr/share/golly/Rules", "/usr/local/share/golly/Rules")
"""Folders in which Golly installations store rules."""
MOST_NODES = 1 << 17

Item = int | str
"""Set of matching states as bits, or the name of a variable that occurs repeatedly, each time with the same state."""
Transition = tuple[tuple[Item, ...], Item]


@dataclass(frozen=True, eq=False)
class RuleFile:
    """Rule of several states as a decision diagram, with the colours of states."""

    states: int
    neighbourhood: str
    cells: tuple[int, ...]
    """Patch positions in the order in which the diagram branches on them."""
    nodes: Sequence[tuple[int, tuple[int, ...]]]
    """Depth of each node, 1 at the leaves, and its children by state: node indices or, at depth 1, new states."""
    colours: dict[int, tuple[int, int, int]]


def find(name: str, folder: Path) -> Path | None:
    """Return the file `NAME.rule` in `folder`, the current folder or Golly's folders; None if there is none."""
    if not re.fullmatch(r"[\w+-][\w.+-]*", name):
        return None
    for place in (folder, Path(), *map(Path, FOLDERS)):
        with suppress(RuntimeError):  # raised if the user has no home folder
            if (path := place.expanduser() / f"{name}.rule").is_file():
                return path
    return None


def load(path: Path) -> RuleFile:
    """Read a rule file. Raises CircuitError, which names the file, if it is invalid."""
    try:
        return read(netlist_json.read_text(path))
    except CircuitError as error:
        raise netlist_json.refusal(path, error) from error


def read(text: str) -> RuleFile:
    """Parse the contents of a rule file, of which the first @TABLE or @TREE counts. Raises CircuitError."""
    parts = re.split(r"^@(\w+)", re.sub(r"#.*", "", text), flags=re.MULTILINE)[1:]
    sections = list(zip(parts[::2], parts[1::2], strict=True))
    colours = {}
    for line in next((body for kind, body in sections if kind == "COLORS"), "").splitlines():
        if re.fullmatch(r"\s*\d+(\s+\d+){3}\s*", line):
            state, red, green, blue = (min(255, int(word)) for word in line.split())
            colours[state] = red, green, blue
    for kind, body in sections:
        if kind in ("TABLE", "TREE"):
            return (_table if kind == "TABLE" else _tree)(body, colours)
    raise CircuitError("Expected @TABLE or @TREE in the rule, got neither.")


def _fields(body: str, *names: str) -> tuple[list[str], list[str]]:
    """Return the values of the required fields `names`, and the lines without a field. Raises CircuitError."""
    values, rest = {}, []
    for line in filter(None, map(str.strip, body.splitlines())):
        if match := re.fullmatch(r"(\w+)\s*[:=]\s*(\w+)", line):
            values[match[1].lower()] = match[2]
        else:
            rest.append(line)
    if missing := [name for name in names if name not in values]:
        raise CircuitError(f"The rule does not specify its {missing[0]}.")
    if not values[names[0]].isdigit() or not 2 <= int(values[names[0]]) <= MOST_STATES:
        raise CircuitError(f"A rule must have 2 to {MOST_STATES} states, got {values[names[0]]!r:.20}.")
    return [values[name] for name in names], rest


def _tree(body: str, colours: dict[int, tuple[int, int, int]]) -> RuleFile:
    (count, around, _), rest = _fields(body, "num_states", "num_neighbors", "num_nodes")
    states = int(count)
    if not around.isdigit() or int(around) not in TREE_CELLS:
        raise CircuitError(f"A tree must have 4 or 8 neighbours, got {around!r:.20}.")
    cells, nodes = TREE_CELLS[int(around)], list[tuple[int, tuple[int, ...]]]()
    for line in rest:
        numbers = [int(word) if word.isdigit() else -1 for word in line.split()]
        depth, *children = numbers
        below = range(states) if depth == 1 else range(len(nodes))
        if len(children) != states or not all(
            child in below and (depth == 1 or nodes[child][0] == depth - 1) for child in children
        ):
            raise CircuitError(f"Expected a depth and {states} children of the depth below, got {line!r:.60}.")
        nodes.append((depth, tuple(children)))
    if not nodes or nodes[-1][0] != len(cells):
        raise CircuitError(f"The last node of the tree must have the depth {len(cells)}.")
    return RuleFile(states, "moore" if len(cells) > 5 else "von-neumann", cells, nodes, colours)


def _table(body: str, colours: dict[int, tuple[int, int, int]]) -> RuleFile:
    (count, around, symmetry), lines = _fields(body, "n_states", "neighborhood", "symmetries")
    names = {golly.lower(): own for own, (golly, _) in CELLS.items()}
    if around.lower() not in names:
        raise CircuitError(f"Unsupported neighbourhood {around!r:.40}: expected {', '.join(names)}.")
    states, neighbourhood = int(count), names[around.lower()]
    cells = CELLS[neighbourhood][1]
    turns = _turns(symmetry, len(cells) - 1)
    variables: dict[str, int] = {}
    transitions: dict[Transition, None] = {}
    for line in lines:
        if match := re.fullmatch(r"var\s+(\w+)\s*=\s*(?:\{(.*)\}|(\w+))", line):
            variables[match[1]] = 0
            for word in (match[2] or match[3] or "").split(","):
                variables[match[1]] |= _states(word.strip(), variables, states)
            continue
        words = [word.strip() for word in (line.split(",") if "," in line else line)]
        if len(words) != len(cells) + 1:
            raise CircuitError(f"A transition must have {len(cells) + 1} states, got {line!r:.60}.")
        repeated = {word for word in words if word in variables and words.count(word) > 1}
        items: list[Item] = [word if word in repeated else _states(word, variables, states) for word in words]
        if isinstance(items[-1], int) and items[-1].bit_count() > 1:
            raise CircuitError(f"A transition must lead to one state, got {line!r:.60}.")
        for turn in turns:
            transitions[(items[0], *(items[1 + place] for place in turn)), items[-1]] = None
    return RuleFile(states, neighbourhood, cells, _diagram(list(transitions), variables, states, len(cells)), colours)


def _states(word: str, variables: dict[str, int], states: int) -> int:
    """Return the set of states of `word`, a number or a variable, as the bits of an integer. Raises CircuitError."""
    if word in variables:
        return variables[word]
    if not word.isdigit() or int(word) >= states:
        raise CircuitError(f"Expected a state from 0 to {states - 1} or a variable, got {word!r:.40}.")
    return 1 << int(word)


def _turns(symmetry: str, ring: int) -> list[tuple[int, ...]]:
    """Return the permutations of `ring` neighbours in Golly's `symmetry`. Raises CircuitError."""
    places = tuple(range(ring))
    if symmetry == "permute":
        return list(permutations(places))
    match = re.fullmatch(r"none|(?:rotate([23468]))?_?(reflect(?:_horizontal)?)?", symmetry)
    rotations = int(match[1] or 1) if match else 0
    if not rotations or ring % rotations:
        raise CircuitError(f"Unsupported symmetry {symmetry!r:.40} for this neighbourhood.")
    mirrored = [places] if match is None or not match[2] else [places, tuple(-place % ring for place in places)]
    return [tuple(turn[(place + k * ring // rotations) % ring] for place in places)
            for turn in mirrored for k in range(rotations)]  # fmt: skip


def _diagram(
    transitions: list[Transition], variables: dict[str, int], states: int, depth: int
) -> list[tuple[int, tuple[int, ...]]]:
    everything = (1 << states) - 1
    # The last transition keeps a cell that matches no other: its first item, the centre, equals the result.
    stays: Transition = (("", *[everything] * (depth - 1)), "")
    nodes: dict[tuple[int, tuple[int, ...]], int] = {}
    numbers: dict[tuple[Transition, ...], int] = {}

    def matching(alive: Sequence[Transition], state: int) -> Iterator[Transition]:
        bit = 1 << state
        tails = set()
        for (first, *rest), result in alive:
            name = first if isinstance(first, str) else None
            if not (variables.get(first, everything) if isinstance(first, str) else first) & bit:
                continue
            tail = tuple(bit if name is not None and item == name else item for item in rest)
            if tail not in tails:
                tails.add(tail)
                yield tail, bit if name is not None and result == name else result
            if all(item == everything for item in tail):
                return

    def node(alive: tuple[Transition, ...], level: int) -> int:
        if not level:
            result = alive[0][1]
            return (variables[result] if isinstance(result, str) else result).bit_length() - 1
        if alive not in numbers:
            children = tuple(node(tuple(matching(alive, state)), level - 1) for state in range(states))
            numbers[alive] = nodes.setdefault((level, children), len(nodes))
            if len(numbers) > MOST_NODES:
                raise CircuitError(f"The decision diagram of the rule has more than {MOST_NODES} nodes.")
        return numbers[alive]

    node((*transitions, stays), depth)
    return list(nodes)
