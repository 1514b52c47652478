"""Labelled tables, from which classifiers learn. A run stores its table in `data.npz`."""

from __future__ import annotations

import hashlib
import io
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from difflogic.config import csv_rows
from difflogic.config.dataset import NAME, held_out_samples
from difflogic.config.fields import hint
from difflogic.config.policy import ClassifierConfig, PolicyConfig, TableConfig
from difflogic.errors import DataError
from difflogic.system import array_files
from difflogic.system.brief import brief
from difflogic.system.cache import warn

LEAST_ROWS = 3
"""Minimum number of rows of a class: one each for training, validation and the held-out part."""
MOST_FEATURES, MOST_CLASSES = 4096, 256
MOST_LETTERS = 40
"""Maximum length of the name of a column or class in a circuit."""
LARGEST = float(np.finfo(np.float32).max)
"""Maximum absolute value of a feature, since the mean and spread of columns are float32."""
_HASHED = 4096
"""Number of rows in each update of the hash."""
LEAST_COUNTED = 8
"""Minimum number of rows at which a column of consecutive numbers is reported as a row counter."""
Numbers = npt.NDArray[np.float64] | npt.NDArray[np.uint8]
Integers = npt.NDArray[np.int64]


class Parts(NamedTuple):
    """Ascending indices of the rows in each part of a table."""

    learned: Integers
    validation: Integers
    held_out: Integers


@dataclass(frozen=True, eq=False)
class LabelledTable:
    """Table with a class for each row of numbers.

    Use `of` to create a table from arrays, and `load_table` to read a file.

        >>> table = difflogic.LabelledTable.of(np.arange(8.0).reshape(8, 1), ["low"] * 4 + ["high"] * 4)
        >>> table.classes
        ('high', 'low')
    """

    x: Numbers
    """Features, uint8 or finite float64 `[N, D]`."""
    y: Integers
    """Labels `[N]`, which are indices of `classes`."""
    features: tuple[str, ...]
    classes: tuple[str, ...]
    label: str
    tests: int = 0
    """Number of rows in the test set; these are the last rows."""

    __repr__ = brief

    @classmethod
    def of(
        cls, x: npt.ArrayLike, labels: npt.ArrayLike, features: Sequence[str] | None = None, label: str = "label"
    ) -> LabelledTable:
        """Make a table from numbers `[N, D]` in the columns `features`, and labels `[N]`. Raises DataError."""
        numbers, names = np.asarray(x), np.asarray(labels)
        if numbers.ndim != 2 or not numbers.size or numbers.dtype.kind not in "biuf":
            raise DataError(f"Features must be numbers [N, D], got {numbers.dtype} of shape {list(numbers.shape)}.")
        # Images remain bytes, an eighth of the size of float64, until a batch is converted to bits.
        numbers = numbers.astype(np.uint8 if numbers.dtype.itemsize == 1 and numbers.dtype.kind in "bu" else np.float64)
        if numbers.shape[1] > MOST_FEATURES:
            raise DataError(f"A table has at most {MOST_FEATURES} features, got {numbers.shape[1]}: leave some out.")
        if names.shape != (len(numbers),):
            raise DataError(f"Expected {len(numbers)} labels, one for each row, got the shape {list(names.shape)}.")
        columns = features or [f"x{d}" for d in range(numbers.shape[1])]
        if numbers.dtype != np.uint8 and len(wrong := np.argwhere(~(np.abs(numbers) <= LARGEST))):
            row, column = wrong[0]
            raise DataError(
                f"Row {row + 1} has {numbers[row, column]} in the column {columns[column]}: expected numbers of at "
                f"most {LARGEST:.2g} in size."
            )
        texts = [_text(name) for name in names.tolist()]
        classes = sorted(set(texts), key=lambda text: (*_as_number(text), text))
        places = {text: place for place, text in enumerate(classes)}
        y = np.array([places[text] for text in texts])
        return cls(numbers, y, _words(columns, "x"), _words(classes, "class"), label)

    def __len__(self) -> int:
        return len(self.x)

    @cached_property
    def sha256(self) -> str:
        """SHA-256 of the rows, labels and names, independent of the format of their file."""
        digest = hashlib.sha256(repr((self.x.shape, self.features, self.classes, self.label)).encode())
        for first in range(0, len(self), _HASHED):
            digest.update(self.x[first : first + _HASHED].astype("<f8").tobytes())
        digest.update(self.y.astype("<i8").tobytes())
        return digest.hexdigest()

    def fields(self) -> dict[str, Any]:
        """Return the fields of the section `[table]` that describe this table."""
        return {"sha256": self.sha256, "rows": len(self), "test": self.tests, "label": self.label,
                "features": list(self.features), "classes": list(self.classes)}  # fmt: skip

    def with_test(self, test: LabelledTable) -> LabelledTable:
        """Return this table with a test set appended. Raises DataError if `test` lacks a column or has a new class."""
        x, y = test.as_known(self.features, self.classes)
        if (y < 0).any():
            unknown = next(name for name in test.classes if name not in self.classes)
            raise DataError(
                f"The test set has rows of the class {unknown}, but in the training rows the label {self.label} has "
                f"other classes, such as {', '.join(self.classes[:8])}: leave those rows out."
            )
        return replace(self, x=np.concatenate([self.x, x]), y=np.concatenate([self.y, y]), tests=len(test))

    def require_learnable(self) -> None:
        """Raise DataError if there is one class or too many, a class has too few rows, or no feature varies."""
        counts = np.bincount(self.y[: len(self) - self.tests])
        rarest = self.classes[int(counts.argmin())]
        if len(counts) == 1:
            raise DataError(
                f"The label {self.label} is {rarest} in all {len(self)} rows: a classifier needs two classes or more."
            )
        if len(counts) > MOST_CLASSES or counts.min() < LEAST_ROWS:
            raise DataError(
                f"The label {self.label} has {len(counts)} values, of which {rarest} is in {counts.min()} rows: "
                f"expected at most {MOST_CLASSES} classes, each in at least {LEAST_ROWS} rows. Divide a quantity into "
                "ranges first."
            )
        if (self.x == self.x[0]).all():
            raise DataError("All rows have the same features: there is nothing to learn from.")

    def parts(self, shares: TableConfig) -> Parts:
        """Split the rows of each class into training, validation and held-out rows; a test set is held out, too."""
        random = np.random.Generator(np.random.Philox(np.random.SeedSequence([shares.split])))
        others = len(self) - shares.test
        parts: tuple[list[Integers], ...] = ([], [], [np.arange(others, len(self))])
        for place in range(len(self.classes)):
            rows = random.permutation(np.flatnonzero(self.y[:others] == place))
            held = held_out_samples(len(rows), shares.held_out)
            chosen = held_out_samples(len(rows) - held, shares.validation)
            for part, some in zip(parts, np.split(rows, [len(rows) - held - chosen, len(rows) - held]), strict=True):
                part.append(some)
        return Parts(*(np.sort(np.concatenate(part)) for part in parts))

    def thresholds(self, rows: Integers, bits: int) -> list[list[float]]:
        """Return at most `bits` thresholds for each feature: midpoints between values in `rows`, near the quantiles."""
        return [_thresholds(self.x[rows, column].astype(np.float64), bits) for column in range(self.x.shape[1])]

    def as_known(self, features: Sequence[str], classes: Sequence[str]) -> tuple[Numbers, Integers]:
        """Return the columns `features`, and labels as indices of `classes` or -1. Raises DataError."""
        if missing := [name for name in features if name not in self.features]:
            raise DataError(
                f"The table lacks the column {missing[0]}{hint(missing[0], self.features)}: expected "
                f"{', '.join(features[:8])}{' ...' if len(features) > 8 else ''}."
            )
        places = np.array([classes.index(name) if name in classes else -1 for name in self.classes])
        return self.x[:, [self.features.index(name) for name in features]], places[self.y]

    def encode(self) -> bytes:
        """Return the table as the contents of an `.npz` file, which `of_run` reads."""
        file = io.BytesIO()
        arrays: dict[str, Any] = {"x": self.x, "y": self.y, "label": np.array(self.label)}
        np.savez_compressed(file, features=np.array(self.features), classes=np.array(self.classes), **arrays)
        return file.getvalue()


def of_run(config: PolicyConfig, folder: Path) -> LabelledTable | None:
    """Return the table of a run, or None if agents learn in an environment. Raises DataError."""
    if not isinstance(config, ClassifierConfig):
        return None
    table = decoded(folder / NAME)
    if table.sha256 != config.table.sha256:
        raise DataError(f"The rows in {folder / NAME} are not those of the run: their SHA-256 is not table.sha256.")
    return table


def decoded(source: Path | IO[bytes]) -> LabelledTable:
    """Return the table in a file that `encode` made. Raises DataError for any other file."""
    arrays = array_files.read_arrays(source)
    try:
        features, classes = ([str(text) for text in arrays[name].tolist()] for name in ("features", "classes"))
        table, y = LabelledTable.of(arrays["x"], arrays["y"], features, str(arrays["label"])), arrays["y"]
    except (KeyError, TypeError) as error:
        raise DataError(f"{source} is not the table of a run: it has no {error}.") from error
    is_index = y.dtype.kind in "iu" and y.min() >= 0 and y.max() < len(classes)
    if not is_index or table.features != tuple(features) or _words(classes, "class") != tuple(classes):
        raise DataError(f"{source} is not the table of a run: a label has no class, or runs never write such names.")
    return replace(table, y=y.astype(np.int64), classes=tuple(classes))


def load_table(path: Path | str, label: str = "label") -> LabelledTable:
    """Read a table: a .csv with a row of names, an .npz with labels and features `[N, D]`, or an IDX file of images.

        >>> np.savez(folder / "sizes.npz", lengths=[[1.0], [2.0]] * 3, kind=["a", "b"] * 3)
        >>> difflogic.load_table(folder / "sizes.npz", "kind").classes
        ('a', 'b')

    Args:
        path: The file, which may be compressed as .gz. Columns are separated by commas, semicolons or tabs. A first
            column without a name is left out. The labels of `train-images-idx3-ubyte` are read from the file
            `train-labels-idx1-ubyte` next to it.
        label: Name of the column or array with the labels.

    Returns:
        The table.

    Raises:
        DataError: The file cannot be read, there is no such label, or a value is missing or not a number.
    """
    path = Path(path)
    try:
        return (_of_npz if _suffix(path) == ".npz" else _of_idx if array_files.is_idx(path) else _of_csv)(path, label)
    except DataError as error:
        raise DataError(str(error) if f" {path}:" in str(error) else f"{path}: {error}") from error


def label_of(path: Path, features: Sequence[str]) -> str:
    """Return the name of the only column that is not in `features`. Raises DataError unless there is exactly one."""
    if array_files.is_idx(path):
        return "label"
    names = array_files.names(_npz(path)) if _suffix(path) == ".npz" else csv_rows.read(path)[0][1]
    others = [name for name in names if name and _word(name, "x") not in features]
    if len(others) != 1:
        raise DataError(f"{path}: which column contains the labels? Give --label with one of {', '.join(names[:20])}.")
    return others[0]


def is_table(path: Path) -> bool:
    """Return whether files of this format are always labelled tables: .csv and IDX, unlike .npz."""
    return _suffix(path) == ".csv" or array_files.is_idx(path)


def _suffix(path: Path) -> str:
    return path.with_suffix("").suffix if path.suffix == ".gz" else path.suffix


def _npz(path: Path) -> Path | io.BytesIO:
    return io.BytesIO(array_files.content(path)) if path.suffix == ".gz" else path


def _of_idx(path: Path, label: str) -> LabelledTable:
    other = path.with_name(path.name.replace("images", "labels").replace("idx3", "idx1"))
    if other == path or not other.is_file():
        raise DataError(
            "no labels: put a file of labels next to it, such as train-labels-idx1-ubyte for train-images-idx3-ubyte."
        )
    images = array_files.read_idx(path)
    return LabelledTable.of(images.reshape(len(images), -1), array_files.read_idx(other), label=label)


def _of_npz(path: Path, label: str) -> LabelledTable:
    arrays = array_files.read_arrays(_npz(path))
    if label not in arrays:
        raise DataError(f"there is no array {label!r}{hint(label, arrays)}: it has {', '.join(arrays)}.")
    features = [name for name in arrays if name != label]
    if len(features) != 1:
        raise DataError(f"expected one array of features besides {label}, got {len(features)}.")
    return LabelledTable.of(arrays[features[0]], arrays[label], label=label)


def _of_csv(path: Path, label: str) -> LabelledTable:
    (_, names), *rows = csv_rows.read(path)
    if label not in names or not label:
        raise DataError(f"there is no column {label!r}{hint(label, names)}: its first row names {', '.join(names)}.")
    if not rows:
        raise DataError("there is no row below the names of the columns.")
    if not names[0]:
        warn(f"The first column of {path} has no name, like row names of pandas and R, and is not used as a feature.")
    for line, row in rows:
        if empty := [name for name, text in zip(names, row, strict=True) if name and text.lower() in _NOTHING]:
            raise DataError(
                f"row {line} has no value in the column {empty[0]}: fill it in, or leave the row or the column out."
            )
    lines, texts = zip(*rows, strict=True)
    columns = dict(zip(names, zip(*texts, strict=True), strict=True))
    features = [name for name in names if name and name != label]
    numbers = np.array([_numbers(name, lines, columns[name]) for name in features]).T
    for place in np.flatnonzero((np.diff(numbers, axis=0) == 1).all(axis=0) & (len(rows) >= LEAST_COUNTED)):
        warn(f"The column {features[place]} of {path} numbers the rows, so their order would be learned: leave it out.")
    return LabelledTable.of(numbers, columns[label], features, label)


_NOTHING = frozenset({"", "na", "n/a", "nan", "null", "none", "?"})
"""Texts that represent a missing value."""
_TRUTH = (("false", "true"), ("no", "yes"), ("f", "t"), ("n", "y"))
"""Pairs of texts that mean 0 and 1 in a column without other texts."""


def _numbers(column: str, lines: Sequence[int], texts: Sequence[str]) -> list[float]:
    """Convert the texts of a column to numbers; true and yes become 1, false and no 0. Raises DataError."""
    values = {text.lower() for text in texts}
    for no, yes in _TRUTH:
        if values <= {no, yes}:
            return [float(text.lower() == yes) for text in texts]
    return [_number(text, column, line) for line, text in zip(lines, texts, strict=True)]


def _number(text: str, column: str, line: int) -> float:
    _, number = _as_number(text)
    if abs(number) <= LARGEST:
        return number
    expected = "finite numbers: give a column of 0 and 1 for each text that it may contain, or leave it out"
    if re.fullmatch(r"[+-]?[\d.,]*\d", text):
        expected = "finite numbers: write decimals with a point, and thousands without a separator"
    if math.isfinite(number):
        expected = f"at most {LARGEST:.2g} in size: give it in another unit"
    raise DataError(f"row {line} has {text[:40]!r} in the column {column}, but features must be {expected}.")


def _thresholds(column: npt.NDArray[np.float64], bits: int) -> list[float]:
    values = np.unique(column)
    between = values[:-1] / 2 + values[1:] / 2
    if len(between) > bits:
        quantiles = np.quantile(column, np.arange(1, bits + 1) / (bits + 1))
        between = between[np.unique(np.minimum(np.searchsorted(between, quantiles), len(between) - 1))]
    thresholds: list[float] = np.unique(between).tolist()
    return thresholds


def _text(label: Any) -> str:
    """Return a label as text, with 1.0 as 1, since programs write the same label in both forms."""
    return re.sub(r"^(-?\d+)\.0+$", r"\1", str(label))


def _as_number(text: str) -> tuple[bool, float]:
    """Return a sort key that puts numbers before other texts: (False, number) or (True, infinity)."""
    try:
        return False, float(text)
    except ValueError:
        return True, math.inf


def _words(names: Sequence[str], stem: str) -> tuple[str, ...]:
    """Return an identifier for each name (see `_word`). Raises DataError if two identifiers are equal."""
    words = {_word(name, stem): name for name in names}
    for name in names:
        if words[_word(name, stem)] != name:
            raise DataError(f"{name!r} and {words[_word(name, stem)]!r} are too similar: rename one of them.")
    return tuple(words)


def _word(name: str, stem: str) -> str:
    """Return an identifier for a name: petal_length_cm for `petal length (cm)`, class_3 for 3 and the stem `class`."""
    text = re.sub(r"^-(?=[\d.])", "minus ", name)
    word = re.sub(r"[^A-Za-z0-9]+", "_", text).strip("_")
    word = word if word[:1].isalpha() else f"{stem}_{word}".rstrip("_")
    # A hash separates names that differ only in removed characters: <=50 and >50, A+ and A-, letters of other scripts.
    if len(word) > MOST_LETTERS or not re.fullmatch(r"\w+([ \-./:,_()\[\]]+\w+)*[)\]]?", text, re.ASCII):
        word = f"{word[: MOST_LETTERS - 7]}_{hashlib.sha256(name.encode()).hexdigest()[:6]}"
    return word
