"""`difflogic train`, `init` and `presets`: any preset, file or target, and everything that can be wrong with them."""

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from difflogic.cli import request
from difflogic.config import agent_presets, presets, recipes
from difflogic.config.schema import Config
from difflogic.config.train import HardeningConfig, TrainConfig
from difflogic.core import rules
from difflogic.errors import UsageError
from difflogic.runs import checkpoint
from tests import tolerances
from tests.cli.conftest import Call
from tests.train.tiny import assert_same_run, tiny_config

CPU = ("--engine", "cpu", "--epochs", 2)


def save_picture(name: str, width: int = 6, height: int = 5) -> None:
    """Red, green, blue and black pixels in turns."""
    colors = np.array([[255, 0, 0], [0, 255, 0], [0, 0, 255], [0, 0, 0]], dtype=np.uint8)
    Image.fromarray(colors[np.arange(width * height).reshape(height, width) % 4]).save(name)


def config_of(folder: str) -> Config:
    return checkpoint.load(Path(folder)).config


def test_train_checkerboard_equals_train_with_the_preset(difflogic: Call, call: Call) -> None:
    code, out, errors = difflogic("train", "tiny", "--engine", "reference", "--out", "long")
    assert (code, errors) == (0, "")
    call("--out", "short")
    assert_same_run(Path("long"), Path("short"))
    assert out.splitlines()[3:9] == [
        "Target: checkerboard, 6 cells wide, 5 high, 14 on, 2 colours",
        "..11..", "..11..", "11..11", "11..11", "..11..",
    ]  # fmt: skip


def test_set_changes_any_field(difflogic: Call) -> None:
    sets = ["optimizer.lr=0.07", "task.loss_steps=[1, 3]", "name=mine", "model.periodic = true", "optimizer.lr=0.08"]
    assert difflogic("train", "tiny", *CPU, "--out", "run", *(w for s in sets for w in ("--set", s))).code == 0
    expected = tiny_config(lr=0.08, epochs=2).with_(name="mine", model={"periodic": True}, task={"loss_steps": [1, 3]})
    assert config_of("run") == expected


def test_fields_that_depend_on_each_other_are_checked(difflogic: Call) -> None:
    sets = ("--set", "pool.size=48", "--set", "train.batch=7")
    assert difflogic("train", "tiny", *CPU, "--batch", 6, *sets, "--out", "run").code == 0
    assert (config_of("run").train.batch, config_of("run").pool.size) == (6, 48)


def test_set_changes_a_nested_field() -> None:
    changed = request.parse(["model.update.connections=['random', 'unique', 'unique', 'unique']"])
    assert tiny_config().with_(**changed).model.update.connections[:2] == ("random", "unique")
    assert tiny_config().with_(**changed).model.update.widths == tiny_config().model.update.widths


@pytest.mark.parametrize(
    ("text", "value"),
    [("0.06", 0.06), ("6", 6), ("true", True), ("'seed'", "seed"), ("seed", "seed"), ("[1, 2]", [1, 2]),
     ("", ""), ("B3/S23", "B3/S23"), ("a=b", "a=b")],
)  # fmt: skip
def test_values_of_set_are_toml_or_text(text: str, value: object) -> None:
    assert request.parse([f"task.start={text}"]) == {"task": {"start": value}}


@pytest.mark.parametrize("text", ["", "train", "=3", "train.=3", ".lr=3"])
def test_malformed_set_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match=r"^--set requires SECTION\.FIELD=VALUE, such as optimizer\.lr=0\.06, got "):
        request.parse([text])


def test_file_of_init_trains_the_same(difflogic: Call) -> None:
    code, out, errors = difflogic("init", "tiny")
    assert (code, out, errors) == (0, "Wrote tiny.toml: train it with difflogic train --config tiny.toml\n", "")
    assert Config.load(Path("tiny.toml")) == tiny_config()
    assert difflogic("train", "--config", "tiny.toml", *CPU, "--out", "run").code == 0
    assert config_of("run") == tiny_config(epochs=2)


def test_init_replaces_a_file_if_forced(difflogic: Call) -> None:
    Path("mine.toml").write_text("precious")
    assert difflogic("init", "lizard", "-o", "mine.toml", "--force", "--set", "optimizer.lr=0.1").code == 0
    assert Config.load(Path("mine.toml")) == recipes.applied("robust", presets.lizard()).with_(optimizer={"lr": 0.1})
    out = difflogic("init", "lizard", "-o", "mine.toml", "--force", "--recipe", "paper").out
    assert Config.load(Path("mine.toml")) == presets.lizard()
    assert out.endswith("--config mine.toml\n")  # the paper trains once
    Path("folder").mkdir()
    errors = difflogic("init", "lizard", "-o", "folder", "--force").errors
    assert errors.startswith("Error: Expected a file, but folder is a folder.")


def test_image_file_is_a_target(difflogic: Call) -> None:
    save_picture("cat.png")
    out = difflogic("init", "colored-g", "--target", "cat.png", "--padding", 1, "-o", "cat.toml").out
    assert "task.height 16 -> 7, task.width 16 -> 8" in out
    config = Config.load(Path("cat.toml"))
    assert config.task.picture[1] == ".124.12."
    assert (config.task.height, config.task.width, config.task.loss_channels) == (7, 8, 3)


def test_drawing_on_paper_is_inverted_by_default(difflogic: Call) -> None:
    paper = np.full((6, 6), 255, dtype=np.uint8)
    paper[2:4, 1:5] = 0
    Image.fromarray(paper).save("paper.png")
    notice = "is dark on light and is inverted: set --invert to false"
    for extra, is_inverted, row in (([], True, "..1111.."), (["--invert"], False, "..1111.."),
                                    (["--no-invert"], False, ".1....1.")):  # fmt: skip
        options = ("--target", "paper.png", "--padding", 1, *extra, "--force", "-o", "paper.toml")
        assert (notice in difflogic("init", "lizard", *options).out) == is_inverted
        assert Config.load(Path("paper.toml")).task.picture[3] == row


def test_recipe_overrides_the_preset_but_not_options(difflogic: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    fields = {"hardening": {"share": 0.5}, "optimizer": {"lr": 0.3}, "train": {"batch": 1}}
    monkeypatch.setattr(recipes, "robust", lambda _: recipes.Recipe((0.25, 0.75), fields))
    options = ("--recipe", "robust", "--restarts", 0, "--engine", "cpu", "--epochs", 4, "--batch", 2,
               "--set", "optimizer.lr=0.4")  # fmt: skip
    assert difflogic("train", "tiny", *options, "--out", "run").code == 0
    config = config_of("run")
    assert (config.optimizer.lr, config.train.batch, config.initial.logit) == (0.4, 2, 2)  # the last its own
    assert config.hardening == HardeningConfig(share=0.5, begin=1, end=3)
    assert config.model.wiring_per_kernel


def test_restarts_share_the_epochs_of_a_run(difflogic: Call) -> None:
    still = ("--set", "task.start=zeros", "--set", "optimizer.lr=0", "--eval-interval", 5)
    sixty = ("--engine", "cpu", "--epochs", 60, "--restarts", 1)
    code, out, errors = difflogic("train", "tiny", *sixty, *still, "--out", "run")
    assert (code, errors) == (0, "")
    assert "Attempt 1: given up at epoch 15 with " in out
    assert "wrong cells, seed 23: its soft loss hardly fell\n" in out
    assert "Attempt 2 of at most 2, seed " in out
    told = json.loads(Path("run/restarts.json").read_text())
    assert [each["epoch"] for each in told["attempts"]] == [15, 45]
    assert "Attempts:        2; attempt 1 is the best" in Path("run/summary.txt").read_text()
    assert out.rstrip().endswith("Run folder:      run")


@pytest.mark.parametrize(
    ("given", "attempts", "notice"),
    [
        ((), 4, ""),
        (("--restarts", 1), 2, ""),
        (("--restarts", 0), None, ""),
        (("--init-from", "other"), None, "--init-from takes the wiring of another run, so there is only one attempt."),
        (("--population", 2), None, ""),
        (("--population", 2, "--restarts", 1), 2, ""),
        (("--epochs", 1), None, "--epochs 1 leaves no room for a second attempt."),
        (("--recipe", "paper"), None, ""),
    ],
    ids=lambda value: " ".join(map(str, value)) if isinstance(value, tuple) else None,
)
def test_recipe_reports_its_restarts(difflogic: Call, monkeypatch, given, attempts, notice) -> None:
    monkeypatch.setattr(recipes, "robust", lambda _: recipes.Recipe((0.25, 0.75), {"optimizer": {"lr": 0.0}}))
    tiny = ("train", "tiny", "--engine", "reference", "--epochs", 4, "--set", "task.start=zeros")
    if "--init-from" in given:
        assert difflogic(*tiny, "--out", "other").code == 0
    code, out, errors = difflogic(*tiny, "--recipe", "robust", *given, "--out", "run")
    assert (code, errors == "") == (0, notice == "")
    assert notice == "" or errors.startswith(f"Warning: The recipe robust does not restart here: {notice}")
    assert Path("run/restarts.json").exists() == (attempts is not None)
    limit = "Training stops at the first solution, or after 4 epochs. --recipe paper trains all of these epochs, with"
    assert (f"{limit} batch 3." in out) == (attempts is not None)
    assert attempts is None or f"Attempt 1 of at most {attempts}, " in out


SOURCES = (
    "Nothing to train: give one of PRESET, --config, --target, --rule, --rule-table or --data. "
    "`difflogic presets` lists the presets."
)
BAD_INPUT = [
    ("train", SOURCES),
    ("train tiny --config mine.toml", SOURCES),
    ("train liizard",
     f"Unknown preset 'liizard' (did you mean lizard?): expected one of {', '.join(presets.PRESETS)}, tiny."),
    ("train --config .", "Cannot read the configuration .: Is a directory."),
    ("train --config nowhere.toml", "Cannot read the configuration nowhere.toml: No such file or directory."),
    ("train --config half.toml", "Missing fields: [train]. `difflogic init` writes a file with all fields."),
    ("train --config mine.toml --target cat.png --set task.width=4",
     "cat.png is 6 cells wide and 5 high, but the grid is 4 wide and 20 high: scale it down with --size 4x20, or "
     "give a larger grid."),
    ("train tiny --set optimizer.lr",
     "--set requires SECTION.FIELD=VALUE, such as optimizer.lr=0.06, got 'optimizer.lr'."),
    ("train tiny --set optimizer.lr=fast", "optimizer.lr must be a number between 0 and 1e+30, got 'fast'."),
    ("train tiny --set train.epochs=2\n[x]",
     "--set takes one value, but its text also sets x: give each field separately."),
    ("init lizard --set train.epochs=2\nseed=3",
     "--set takes one value, but its text also sets seed: give each field separately."),
    ("train tiny --set train.epochs=" + "[" * 9999, "--set has tables or lists that are nested too deeply."),
    ("train tiny --set optimizer.lr.a.a=1",
     "--set requires SECTION.FIELD=VALUE, such as optimizer.lr=0.06, got 'optimizer.lr.a.a=1'."),
    ("train --config deep.toml", "The configuration has tables or lists that are nested too deeply."),
    ("train tiny --set train.fire_rate=1.5", "fire_rate must be a number in (0, 1], got 1.5."),
    ("train tiny --set train.epoch=9",
     "Unknown field train.epoch (did you mean epochs?): expected "
     + ", ".join(field.name for field in dataclasses.fields(TrainConfig)) + "."),
    ("train tiny --set train=9", "train must be a table, got 9."),
    ("train tiny --set optimizer.lr.x=9", "optimizer.lr must be a number between 0 and 1e+30, got {'x': 9}."),
    ("train tiny --target cat.png --colors 64",
     "64 colours take 6 channels, but a cell has 2: give --colors 2, or a preset with more channels."),
    ("train tiny --target large.png",
     "A grid must have at least 3x3 cells: add some around large.png with --padding 1."),
    ("train tiny --target nowhere.png", "Cannot read the image nowhere.png: No such file or directory."),
    ("train --data nowhere.csv", "Cannot read the file nowhere.csv: No such file or directory."),
    ("train tiny --invert", "--invert is for images: give --target or --start with it."),
    ("train tiny --rule B3", f"'B3' is not a rule: {rules.GRAMMAR}."),
    ("train tiny --start ones", "--start must be one of random, boards, seed, zeros, or an image file, got 'ones'."),
    ("train tiny --size 0x9", "--size must be WIDTHxHEIGHT of 1 to 128 cells each, got 0x9."),
    ("train --resume x tiny --set a=b --target c.png --padding 2",
     "--resume continues a run as it was configured: omit --set, --target, --padding, PRESET."),
    ("train tiny --restarts 5 --epochs 10",
     "--restarts must be at most 4 for 10 epochs, got 5: an attempt is first tested after 2 epochs."),
    ("train tiny --within 9s --restarts 2",
     "--within and --restarts cannot be used together: one restarts without a limit, the other sets one. Omit one."),
    ("train tiny --until-solved --restarts 2",
     "--until-solved and --restarts cannot be used together: one restarts without a limit, the other sets one. "
     "Omit one."),
    ("train tiny --until-solved --init-from x",
     "--until-solved and --init-from cannot be used together: attempts sample new wiring, but --init-from "
     "keeps the wiring of its run. Omit one."),
    ("train tiny --until-solved --within soon",
     "Invalid value for '--within': Expected a time or a number of epochs, such as 60s, 5m or 2000 epochs, got "
     "'soon'. See 'difflogic train --help'."),
    ("train tiny --restarts 1 --init-from x",
     "--restarts and --init-from cannot be used together: attempts sample new wiring, but --init-from keeps "
     "the wiring of its run. Omit one."),
    ("init lizard --set seed=-1", "seed must be an integer between 0 and 4294967295, got -1."),
    ("presets life", "Unknown preset 'life': expected one of " + ", ".join([*presets.PRESETS, "tiny"]) + "."),
]  # fmt: skip


@pytest.mark.parametrize(("arguments", "text"), BAD_INPUT, ids=[arguments[:60] for arguments, _ in BAD_INPUT])
def test_bad_input_is_refused(arguments: str, text: str, difflogic: Call, tmp_path: Path) -> None:
    save_picture("cat.png")
    save_picture("large.png", 300, 2)
    Path("mine.toml").write_text(presets.lizard().to_toml())
    Path("deep.toml").write_text("name = " + "[" * 100_000)
    Path("half.toml").write_text(presets.lizard().to_toml().partition("[train]")[0])
    before = sorted(tmp_path.rglob("*"))
    assert difflogic(*arguments.split(" ")) == (2, "", f"Error: {text}\n")
    assert sorted(tmp_path.rglob("*")) == before


def test_presets_are_listed(difflogic: Call) -> None:
    code, out, errors = difflogic("presets")
    assert (code, errors) == (0, "")
    lines = out.splitlines()
    named = [line.split()[0] for line in lines if line]
    assert named == ["preset", *presets.PRESETS, "preset", *agent_presets.PRESETS]
    assert " ".join(lines[2].split()) == "checkerboard a board, from noise 16x16 8 16 3040 20 2 500 47.2 M 1"


def test_presets_are_listed_in_json(difflogic: Call) -> None:
    rows = {row["preset"]: row for row in map(json.loads, difflogic("presets", "--json").out.splitlines())}
    life = rows["game-of-life"]
    assert life["gate_evaluations_per_epoch"] == 2543 * 9 * 20
    assert life["cost"] == round(2543 * 9 * 20 * 3000 / (4608 * 256 * 20 * 2 * 500), 3)
    shown = json.loads(difflogic("presets", "lizard", "--json").out)
    assert Config.from_dict(shown.pop("config")) == recipes.applied("robust", presets.lizard())
    assert shown == rows["lizard"]


def test_preset_is_shown_in_full(difflogic: Call) -> None:
    out = difflogic("presets", "lizard").out
    assert "grid            20x20 torus" in out
    assert Config.from_toml(out.partition("\n\n")[2]) == recipes.applied("robust", presets.lizard())
    out = difflogic("presets", "lizard", "--recipe", "paper").out
    assert Config.from_toml(out.partition("\n\n")[2]) == presets.lizard()


# At seed 23: the authors', except for the pixels of colored-g's image. Those of the boards and of Life are in
# tests/engines/test_training.py, on every engine.
@pytest.mark.parametrize(("name", "soft", "hard"), [("lizard", 109.708, 121), ("colored-g", 101.7285, 46 + 36 + 27)])
def test_first_losses_of_images_equal_the_authors(name: str, soft: float, hard: int, difflogic: Call) -> None:
    """The hard circuit of the first epoch still passes everything on, so that its loss is counted after it too."""
    assert difflogic("train", name, "--recipe", "paper", "--engine", "cpu", "--epochs", 1, "--out", "run").code == 0
    row = json.loads(Path("run/metrics.jsonl").read_text())
    assert row["soft_loss"] == pytest.approx(soft, rel=tolerances.LOSS_RTOL)
    assert row["train_hard_loss"] == hard
    assert Path("run/target.png").stat().st_size > 0


def test_until_solved_ends_at_its_limit_and_is_resumed(difflogic: Call) -> None:
    still = ["--set", "optimizer.lr=0", "--engine", "cpu"]
    done = difflogic("train", "tiny", "--until-solved", "--within", "30 epochs", *still, "--out", "run")
    assert done.code == 1
    assert "Attempt 1, seed 23." in done.out
    assert "Not solved within 30 epochs, attempt " in done.out
    assert "Continue with: difflogic train --resume run --within LIMIT" in done.out
    more = difflogic("train", "--resume", "run", "--within", "40 epochs", "--engine", "cpu")
    assert more.code == 1
    assert "Not solved within 40 epochs" in more.out
    refused = difflogic("train", "--resume", "run/attempt-1", "--within", "9s", "--engine", "cpu")
    assert (refused.code, "unlike the run in run/attempt-1: omit it." in refused.errors) == (2, True)


def test_population_of_zero_is_refused_with_and_without_restarts(difflogic: Call, tmp_path: Path) -> None:
    for restarts in ([], ["--restarts", 1]):
        done = difflogic("train", "tiny", "--population", 0, *restarts, "--engine", "reference", "-o", "new")
        assert (done.code, (tmp_path / "new").exists()) == (2, False)
        assert done.errors == "Error: --population must be an integer between 1 and 2147483648, got 0.\n"
