"""Base class of complete configurations, which are read from and written to TOML files."""

import re
import tomllib
from abc import abstractmethod
from pathlib import Path
from typing import Any, Self

import tomli_w

from difflogic.config.fields import REMOVED, Section, by_path, merged, plain, require, section
from difflogic.errors import ConfigError, UsageError
from difflogic.system import files

POLICY, CLASSIFIER = "policy", "classifier"
"""Values of `kind` for agents and for classifiers; configurations of automata have no such field."""
MOST_BYTES = 1 << 26
"""Maximum size of a configuration file in bytes."""
KEY_PARTS, WORD_LETTERS = 16, 1024
"""Maximum parts of a dotted key and characters of a number or bare key, whose parsing takes quadratic time."""
_QUOTED = re.compile(
    r'"""(?:\\.|[^\\])*?(?:"{3,5}|\Z)|' r"'''.*?(?:'{3,5}|\Z)|" r'"(?:\\[^\n]|[^"\\\n])*"?|' r"'[^'\n]*'?|\#[^\n]*",
    re.DOTALL,
)
"""Pattern of strings and comments in TOML. It also matches unterminated strings, so that a scan takes linear time."""
_OVERLONG = re.compile(rf"(?<![\w-])(?:(?:[\w-]++[ \t]*+\.[ \t]*+){{{KEY_PARTS}}}|[\w+-]{{{WORD_LETTERS + 1}}})")


def is_policy(data: Any) -> bool:
    """Return whether plain data is a configuration of agents or of a classifier."""
    return isinstance(data, dict) and data.get("kind") in (POLICY, CLASSIFIER)


def is_classifier(data: Any) -> bool:
    """Return whether plain data configures a classifier; older data have the `kind` of agents, and a table."""
    if not is_policy(data):
        return False
    table = data.get("table")
    return data["kind"] == CLASSIFIER or (isinstance(table, dict) and bool(table.get("sha256")))


@section
class Document(Section):
    """Complete configuration of one run."""

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """Return plain dicts, lists, numbers and strings for TOML and JSON, with `format` first."""

    @classmethod
    @abstractmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        """Make a configuration from the result of `to_dict`. Raises ConfigError for unknown, missing or bad fields."""

    def with_(self, /, **sections: Any) -> Self:
        """Return a copy with some fields replaced.

        Args:
            sections: Fields by name. A dict replaces fields inside a section, like `train={"epochs": 9}`, at any depth.

        Returns:
            The changed copy.

        Raises:
            ConfigError: A field is unknown, or a value is out of range.
        """
        # Fields are replaced in plain data, so that changes in code are checked like changes in a file.
        changes, data, fields = plain(sections), self.to_dict(), vars(self)
        for path in by_path(changes):
            require(path not in REMOVED, f"The field {path} was removed: leave it out.")
        # Unchanged sections are reused, since they were checked when they were created.
        same = {name: fields[name] for name in data.keys() - changes.keys() if isinstance(fields.get(name), Section)}
        return self.from_dict(merged(data, changes) | same)

    def to_toml(self) -> str:
        return tomli_w.dumps(self.to_dict())

    @classmethod
    def from_toml(cls, text: str) -> Self:
        """Read a configuration from TOML. Raises ConfigError if the text is not TOML or not a configuration."""
        return cls.from_dict(parsed(text))

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read a configuration from a TOML file. Raises ConfigError if the file cannot be read or is invalid."""
        return cls.from_dict(read(path))


def toml(text: str, owner: str = "The configuration") -> dict[str, Any]:
    """Parse TOML. Raises TOMLDecodeError, or ConfigError about `owner` for deep nesting or overlong keys or numbers."""
    if _OVERLONG.search(_QUOTED.sub("s", text)):
        raise ConfigError(
            f"{owner} has a key of more than {KEY_PARTS} parts, or a number or name of more than {WORD_LETTERS} "
            "characters: shorten it."
        )
    try:
        return tomllib.loads(text)
    except RecursionError as error:
        raise ConfigError(f"{owner} has tables or lists that are nested too deeply.") from error


def toml_value(text: str, owner: str) -> Any:
    """Parse a TOML value. Other text is a string, since shells strip quotes. Raises ConfigError or UsageError."""
    try:
        data = toml(f"value = {text}", owner)
    except tomllib.TOMLDecodeError:
        return text.strip()
    # After a line break, TOML reads a second assignment as another field.
    if len(data) > 1:
        more = ", ".join(name for name in data if name != "value")
        raise UsageError(f"{owner} takes one value, but its text also sets {more}: give each field separately.")
    return data["value"]


def parsed(text: str) -> dict[str, Any]:
    """Parse the TOML text of a configuration. Raises ConfigError."""
    try:
        return toml(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"The configuration is not valid TOML: {error}.") from error


def read(path: Path) -> dict[str, Any]:
    """Read a TOML configuration file as plain data. Raises ConfigError."""
    try:
        return parsed(files.read_bounded(Path(path), MOST_BYTES).decode("utf-8-sig"))
    except OSError as error:
        raise ConfigError(f"Cannot read the configuration {path}: {error.strerror or error}.") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"Cannot read the configuration {path}: it is not text in UTF-8.") from error
