"""Configurations of the form before `format = 2`: read where they were kept, refused by the new name where not."""

from __future__ import annotations

from typing import Any

import pytest

from difflogic.config import old_form, presets
from difflogic.config.schema import Config
from difflogic.errors import ConfigError

CONFIG = presets.get("checkerboard-small")


def old(**train: Any) -> dict[str, Any]:
    """As it was written once."""
    data = CONFIG.to_dict()
    kept = {name: data[name] for name in ("name", "seed", "model", "task", "train")}
    return {**kept, "train": {**data["train"], **train}}


@pytest.fixture(autouse=True)
def _untold() -> None:
    old_form._notice.cache_clear()


@pytest.mark.parametrize(("name", "place"), old_form.MOVED.items())
def test_every_field_has_a_new_place(name: str, place: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    section, field = place
    value = getattr(getattr(CONFIG, section), field)
    assert Config.from_dict(old(**{name: value})) == Config.from_dict(old()) == CONFIG
    assert capsys.readouterr().err.count("\n") == 1
    with pytest.raises(ConfigError, match=rf"^train\.{name} is now called {section}\.{field}\.$"):
        CONFIG.with_(train={name: value})


def test_what_is_new_needs_no_format(capsys: pytest.CaptureFixture[str]) -> None:
    assert Config.from_dict(old() | {"pool": {"size": 4}}) == CONFIG.with_(pool={"size": 4})
    assert not capsys.readouterr().err


@pytest.mark.parametrize("section", [{"size": 8}, 7])
def test_two_of_one_are_refused(section: Any) -> None:
    with pytest.raises(ConfigError, match=r"^train\.pool is now called pool\.size, which is given too: "):
        Config.from_dict(old(pool=4) | {"pool": section})


@pytest.mark.parametrize("number", [1, 3, "2", True])
def test_another_format_is_refused(number: Any) -> None:
    with pytest.raises(ConfigError, match=rf"^The configuration is of format {number!r}, but this difflogic "):
        Config.from_dict(CONFIG.to_dict() | {"format": number})


def test_unknown_fields_are_unknown_in_both_forms() -> None:
    with pytest.raises(
        ConfigError, match=r"^Unknown field train\.rate \(did you mean fire_rate\?\): expected epochs, "
    ):
        Config.from_dict(old(rate=7, lr=0.1))
