"""Custom targets and initial states, and the fields of a configuration that they change."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from difflogic.config import presets
from difflogic.config.customise import changes, configure
from difflogic.config.request import TrainRequest
from difflogic.config.schema import Config
from difflogic.core import rules, text_picture
from difflogic.engine import job
from difflogic.errors import ConfigError, DataError, UsageError


def picture(folder: Path, width: int, height: int, color: tuple[int, int, int] = (255, 255, 255)) -> Path:
    """All on but the lower right pixel."""
    path = folder / f"{width}x{height}.png"
    image = Image.new("RGB", (width, height), color)
    image.putpixel((width - 1, height - 1), (0, 0, 0))
    image.save(path)
    return path


def wished(config: Config, fixed: tuple[int, int] | None = None, **asked: Any) -> Config:
    return config.with_(**changes(config, TrainRequest(**asked), fixed, config.model.channels)[0])


def test_request_without_changes_keeps_the_preset() -> None:
    for name in presets.PRESETS:
        assert wished(presets.get(name)) == presets.get(name)


def test_grid_takes_the_size_of_the_image(tmp_path: Path) -> None:
    config = wished(presets.lizard(), target=picture(tmp_path, 7, 5), padding=2, invert=False)
    target = job.target(config.task)
    assert target is not None
    assert target.shape == (9, 11, 1)
    assert target[2:7, 2:9].sum() == target.sum() == 34
    assert target[6, 8] == 0
    unchanged = config.with_(task=presets.lizard().task)
    assert unchanged == presets.lizard()


def test_image_or_rule_chooses_its_preset(tmp_path: Path) -> None:
    path = picture(tmp_path, 14, 9)
    config = configure(TrainRequest(target=path)).config
    assert (config.name, config.model.channels, config.task.start) == ("14x9", presets.image().model.channels, "zeros")
    assert (config.task.steps, config.task.stays, config.search.begin > 0) == (14, True, True)
    assert not configure(TrainRequest(target=path, start="seed")).config.task.stays
    assert configure(TrainRequest(rule="B36/S23")).config.name == "B36S23"
    with pytest.raises(ConfigError, match="stays requires an image from start zeros"):
        configure(TrainRequest(target=path, set={"task": {"steps": 9}}))
    with pytest.raises(UsageError, match="Nothing to train"):
        configure(TrainRequest())


def test_size_is_the_grid_and_centres_the_image(tmp_path: Path) -> None:
    config = wished(presets.lizard(), target=picture(tmp_path, 60, 30), size=(20, 16))
    assert (config.task.height, config.task.width) == (16, 20)
    target = job.target(config.task)
    assert target is not None
    assert target.any(axis=(1, 2)).tolist() == [False] * 3 + [True] * 10 + [False] * 3


def test_colours_are_the_images_own_within_the_channels(tmp_path: Path) -> None:
    path = picture(tmp_path, 4, 4, (255, 0, 160))
    assert wished(presets.colored_g(), target=path).task.picture[0] == "5555"
    assert wished(presets.lizard(), target=path).task.picture[0] == "5555"
    assert wished(presets.game_of_life(), target=path).task.picture[0] == "1111"
    config = wished(presets.checkerboard(), target=path, colors=64)
    assert (config.task.loss_channels, config.task.picture[0][0]) == (6, text_picture.ALPHABET[0b001101])
    assert config.task.start == "random"


def test_image_of_one_colour_everywhere_is_refused_as_a_target(tmp_path: Path) -> None:
    ramp = np.linspace(120, 255, 256).reshape(16, 16).astype(np.uint8)
    Image.fromarray(ramp).save(tmp_path / "ramp.png")
    with pytest.raises(DataError, match=r"ramp\.png is read as a single colour"):
        wished(presets.lizard(), target=tmp_path / "ramp.png")
    assert wished(presets.lizard(), target=tmp_path / "ramp.png", padding=1).task.height == 18


def test_image_does_not_start_from_boards(tmp_path: Path) -> None:
    assert wished(presets.game_of_life(), target=picture(tmp_path, 9, 9)).task.start == "seed"


def test_rule_replaces_a_rule_and_nothing_else() -> None:
    config = presets.game_of_life()
    assert wished(config, rule="B36/S23") == config.with_(task={"rule": "B36/S23"})
    assert wished(config, rule="b3/s32") == config


def test_rule_in_place_of_an_image_is_one_step_on_a_torus(tmp_path: Path) -> None:
    (tmp_path / "rule").write_text("01" * 256)
    config = wished(presets.checkerboard_async(), rule_table=tmp_path / "rule")
    task = config.task
    assert (task.target, task.steps, task.start, config.model.periodic) == ("rule", 1, "random", True)
    assert (task.height, task.loss_channels, config.train.fire_rate) == (14, 1, 1.0)
    assert task.rule == "5" * 128
    damaged = presets.lizard().with_(task={"loss_steps": [6, 12], "damage_side": 3, "damage_steps": [6]})
    assert wished(damaged, rule="B3/S23").task.judged_steps == (1,)


def test_one_channel_learns_a_rule_from_all_boards(tmp_path: Path) -> None:
    config = wished(presets.game_of_life(), target=picture(tmp_path, 20, 20))
    learned = wished(config, rule="B3/S23")
    assert (learned.task.start, learned.task.height, learned.task.width) == ("boards", 3, 3)
    assert wished(config, fixed=(20, 20), rule="B3/S23").task.start == "random"


def test_start_sets_the_initial_state(tmp_path: Path) -> None:
    lizard = presets.lizard()
    assert wished(lizard, start="random") == lizard.with_(task={"start": "random"})
    zeros = wished(lizard, start="zeros")
    assert (zeros.task.start, zeros.model.periodic) == ("zeros", False)
    config = wished(lizard, start=str(picture(tmp_path, 4, 6)))
    start = job.start(config)
    assert start is not None
    assert start.shape == (20, 20, 128)
    assert start[7:13, 8:12, 0].sum() == start.sum() == 23
    assert config.task.picture == lizard.task.picture


def test_initial_image_fits_the_grid_of_its_target(tmp_path: Path) -> None:
    path = picture(tmp_path, 5, 4)
    config = wished(presets.colored_g(), target=path, start=str(path), padding=1)
    assert config.task.start_picture == config.task.picture
    assert (config.task.height, config.task.width) == (6, 7)


def refused(words: str, config: Config, fixed: tuple[int, int] | None = None, **asked: Any) -> None:
    with pytest.raises(UsageError) as raised:
        wished(config, fixed, **asked)
    assert str(raised.value) == words


def test_target_larger_than_its_grid_is_refused(tmp_path: Path) -> None:
    path = picture(tmp_path, 24, 9)
    words = (
        f"{path} is 24 cells wide and 9 high, but the grid is 20 wide and 20 high: scale it down with `size` 20x20, "
        "or give a larger grid."
    )
    refused(words, presets.lizard(), (20, 20), target=path)
    refused(words, presets.lizard(), start=str(path))
    assert wished(presets.lizard(), (20, 30), target=path).task.width == 30


def test_more_colours_than_channels_hold_are_refused(tmp_path: Path) -> None:
    path = picture(tmp_path, 9, 9)
    words = "{} colours take {} channels, but a cell has {}: give `colors` {}, or a preset with more channels."
    refused(words.format(8, 3, 1, 2), presets.game_of_life(), target=path, colors=8)
    config = presets.game_of_life()
    with pytest.raises(ConfigError) as raised:
        changes(config, TrainRequest(target=path, colors=64), None, 3)
    assert str(raised.value) == words.format(64, 6, 3, 8)


def test_options_that_contradict_each_other_are_refused(tmp_path: Path) -> None:
    path, lizard = picture(tmp_path, 2, 2), presets.lizard()
    refused("There can be only one target: give `target` or `rule` alone.", lizard, target=path, rule="B3/S23")
    refused("`size` is for images: give `target` or `start` with it.", lizard, size=(9, 9), start="zeros")
    refused("`colors` is for images: give `target` or `start` with it.", lizard, colors=8)
    refused("`threshold` is for images: give `target` or `start` with it.", lizard, threshold=0.0)
    refused("`padding` is for images: give `target` with it.", lizard, padding=1)
    refused("`padding` sets the size of the grid, which is already given: omit one of them.", lizard, (9, 9),
            target=path, padding=1)  # fmt: skip
    refused(f"A grid must have at least 3x3 cells: add some around {path} with `padding` 1.", lizard, target=path)
    refused("`start` must be one of random, boards, seed, zeros, or an image file, got 'sed' (did you mean seed?).",
            lizard, start="sed")  # fmt: skip
    refused(f"'B3' is not a rule: {rules.GRAMMAR}.", lizard, rule="B3")


@pytest.mark.parametrize(
    ("rule", "neighbourhood", "grid"),
    [
        ("b2/s34h", "hex", (3, 3)),
        ("B13/S01V", "von-neumann", (3, 3)),
        ("110", "line", (1, 3)),
        ("B36/S23", "moore", (3, 3)),
    ],
)
def test_rule_sets_its_neighbourhood(rule: str, neighbourhood: str, grid: tuple[int, int]) -> None:
    config = wished(presets.game_of_life(), rule=rule)
    assert (config.task.rule, config.model.neighbourhood) == (rules.parse(rule).name, neighbourhood)
    assert (config.task.height, config.task.width, config.task.start) == (*grid, "boards")


def test_rule_beyond_the_neighbourhood_is_refused() -> None:
    words = (
        "The rule B2/S34H depends on cells that the neighbourhood von-neumann does not have: set model.neighbourhood "
        "to hex."
    )
    config = wished(presets.game_of_life(), rule="B2/S34H")
    with pytest.raises(ConfigError) as raised:
        config.with_(model={"neighbourhood": "von-neumann"})
    assert str(raised.value) == words
    with pytest.raises(ConfigError, match=r'A grid of one row needs model\.neighbourhood "line", got "moore"'):
        presets.checkerboard().with_(task={"height": 1})


def test_empty_initial_image_is_refused(tmp_path: Path) -> None:
    Image.new("L", (4, 4)).save(tmp_path / "a.png")
    with pytest.raises(UsageError, match="has no pixel that is on"):
        wished(presets.lizard(), start=str(tmp_path / "a.png"))
    assert np.array_equal(job.start(wished(presets.colored_g(), start="zeros")), np.zeros((16, 16, 64)))


@pytest.mark.parametrize(
    ("config", "words"),
    [
        (presets.game_of_life(), "all 512 boards"),
        (presets.lizard(), "the initial state"),
        (presets.checkerboard(), "all 32 evaluation grids"),
        (presets.lizard().with_(task={"damage_side": 3, "damage_steps": [0]}), "all 32 evaluation grids"),
    ],
    ids=["boards", "seed", "random", "damaged"],
)
def test_evaluation_grids_are_named(config: Config, words: str) -> None:
    assert job.judges(config) == words
    assert job.probe_count(config) == len(job.probes(config))
