"""A classifier: a table's label is learned in one command, evaluated on held-out rows, and ends as gates."""

import gzip
import json
import re
import shlex
import struct
from pathlib import Path

import numpy as np
import pytest

import difflogic
from difflogic.config import document
from difflogic.config.agent_presets import PRESETS, fitted, of_table
from difflogic.config.fields import merged
from difflogic.config.policy import PolicyConfig
from difflogic.config.table import LabelledTable, load_table
from difflogic.errors import ConfigError, DataError, UsageError
from difflogic.policies import classifier
from difflogic.runs import checkpoint
from tests.policies.test_commands import refusal, run

COOL = ("--set", "logic.final_temperature=0.5", "--set", "logic.temperature=0.5")
SMALL = ("--set", "logic.widths=[60, 60]", "--set", "table.batch_size=32", *COOL, "--steps", 8000)


def rows(count: int = 240, seed: int = 5) -> tuple[np.ndarray, np.ndarray]:
    """Three numbers a row, and a class that two of them decide: one of them has to be above, or both below."""
    x = np.random.default_rng(seed).normal(size=(count, 3)).round(3)
    return x, np.where(x[:, 0] > 0.4, "high", np.where(x[:, 1] > 0, "middle", "low"))


def csv_of(path: Path, x: np.ndarray, labels: np.ndarray, header: str = "width (cm),height,noise,kind") -> Path:
    lines = [",".join([*map(str, row), label]) for row, label in zip(x.tolist(), labels, strict=True)]
    path.write_text("\n".join([header, *lines]) + "\n", encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def file(tmp_path_factory) -> Path:
    return csv_of(tmp_path_factory.mktemp("table") / "kinds.csv", *rows())


@pytest.fixture(scope="module")
def trained(file) -> Path:
    path = file.parent / "run"
    told = run("train", "--data", file, "--label", "kind", "--population", 2, "--out", path, *SMALL)
    assert "240 rows of 3 numbers, 3 classes" in told
    assert f"difflogic simplify {path}" in told
    assert "accuracy.png; summary.txt has the details" in told
    assert [file.name for file in path.glob("*.png")] == ["accuracy.png"]
    return path


def decided(path: Path, x: np.ndarray) -> np.ndarray:
    """The class of each row by the text of function.json alone: thresholds, gates and bits, one after the other."""
    data = json.loads(path.read_text())
    values = {}
    for place, entry in enumerate(data["inputs"]):
        values |= {f"{entry['name']}>={t!r}": (x[:, place] >= t).astype(int) for t in entry["thresholds"]}
    for gate in data["gates"]:
        values[gate["id"]] = gate["gate"] >> (3 - (2 * values[gate["a"]] + values[gate["b"]])) & 1
    numbers = sum(values[name] << bit for bit, name in enumerate(data["outputs"]))
    return np.array(data["classes"])[numbers]


def test_the_accuracy_on_held_out_rows_is_what_another_program_counts(file, trained):
    table, config = load_table(file, "kind"), PolicyConfig.load(trained / "config.toml")
    parts = table.parts(config.table)
    x, labels = rows()
    right = int((decided(trained / "function.json", x[parts.held_out]) == labels[parts.held_out]).sum())
    assert (len(parts.held_out), len(parts.validation)) == (48, 19)
    assert right >= 43
    found = difflogic.evaluate(trained)
    assert (found["accuracy"].values["right"], found["accuracy"].values["rows"]) == (right, 48)
    assert f"{right} of 48 rows held out" in (trained / "summary.txt").read_text()


def test_rows_are_shared_out_by_class_and_by_no_seed_of_training(file):
    table = load_table(file, "kind")
    config = of_table(table, population=2)
    assert not len(table.parts(of_table(table).table).validation), "of one seed nothing is chosen"
    parts = table.parts(config.table)
    assert sorted(np.concatenate(parts).tolist()) == list(range(240))
    for rows_of_part, share in zip(parts, (0.72, 0.08, 0.2), strict=True):
        assert np.bincount(table.y[rows_of_part]) == pytest.approx(share * np.bincount(table.y), abs=1)
    again, other = (table.parts(config.with_(seed=9, table={"split": split}).table) for split in (0, 1))
    assert np.array_equal(again.held_out, parts.held_out)
    assert not np.array_equal(other.held_out, parts.held_out)


def test_however_large_the_shares_are_no_row_is_in_two_parts():
    table = LabelledTable.of(np.arange(14.0)[:, None], ["a"] * 3 + ["b"] * 11)
    parts = table.parts(of_table(table).with_(table={"held_out": 0.95, "validation": 0.95}).table)
    assert sorted(np.concatenate(parts).tolist()) == list(range(14))
    assert set(table.y[parts.learned]) == {0, 1}


def test_a_name_becomes_the_same_word_in_every_table():
    names = ["petal length (cm)", "-1", "1", "<=50", ">50", "A+", "A-", "да", "нет", "7" * 39]
    table = LabelledTable.of(np.ones((10, 1)), names)
    assert all(len(word) <= 40 for word in table.classes)
    words = {name: LabelledTable.of(np.ones((1, 1)), [name]).classes[0] for name in names}
    assert set(table.classes) == set(words.values())
    assert (words["petal length (cm)"], words["-1"], words["1"]) == ("petal_length_cm", "minus_1", "class_1")
    assert LabelledTable.of(np.ones((2, 1)), ["1.0", "2"]).classes == ("class_1", "class_2")


def test_the_best_of_a_population_is_chosen_by_rows_that_are_not_held_out(trained):
    scores = {}
    for line in (trained / "metrics.jsonl").read_text().splitlines():
        row = json.loads(line)
        if row["score"] is not None:
            scores[row["seed"]] = row["score"]
    assert json.loads((trained / "evaluation.json").read_text())["best"] == max(scores, key=lambda seed: scores[seed])


def test_it_goes_on_bit_for_bit(file, trained, tmp_path):
    short = tmp_path / "short"
    # Half of the rows, and then the other half. The temperature follows the share of all, which is told beforehand.
    run("train", "--data", file, "--label", "kind", "--population", 2, "--out", short, *SMALL[:-2], "--steps", 4152)
    run("train", "--resume", short, "--steps", 8000)
    one, other = (checkpoint.read_agents(path) for path in (short, trained))
    for first, second in zip(one.members, other.members, strict=True):
        assert all(np.array_equal(array, second.arrays[name]) for name, array in first.arrays.items())
    assert (short / "function.json").read_text() == (trained / "function.json").read_text()


def test_configuration_of_an_agent_with_a_table_is_that_of_a_classifier(trained):
    """Earlier versions wrote this, and `[table]` without a hash for every agent."""
    own, agent = PolicyConfig.load(trained / "config.toml"), PRESETS["cartpole"]
    old = merged(agent.to_dict(), own.to_dict()) | {"kind": "policy", "algorithm": "supervised"}
    assert document.is_classifier(old)
    assert PolicyConfig.from_dict(old) == own
    assert PolicyConfig.from_dict(agent.to_dict() | {"table": {"sha256": "", "rows": 0}}) == agent
    assert own.to_dict().keys().isdisjoint({"environment", "algorithm", "critic", "ppo", "sac"})


@pytest.mark.parametrize(
    ("rows", "steps"), [(200, 100_000), (2000, 600_000), (10_000, 1_000_000), (100_000, 1_500_000)]
)
def test_default_number_of_rows_follows_the_table(rows: int, steps: int) -> None:
    table = LabelledTable.of(np.arange(rows * 5 // 4)[:, None], np.arange(rows * 5 // 4) % 2)
    assert of_table(table).steps == steps
    assert of_table(table, steps=4000).evaluation.interval == 200


def test_large_tables_are_evaluated_on_a_sample_during_training(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(classifier, "SAMPLED", 10)
    table = LabelledTable.of(np.arange(40)[:, None], np.arange(40) % 2)
    config = of_table(table).with_(table={"held_out": 0.0})
    rows = classifier.Rows(config, table)
    scores = [rows.score(lambda x: np.zeros(len(x), dtype=int), held_out) for held_out in (False, True)]
    assert [len(score.returns) for score in scores] == [10, 40]


def test_new_widths_change_the_temperatures_unless_they_are_set() -> None:
    config = of_table(LabelledTable.of(np.arange(40)[:, None], np.arange(40) % 4))
    wide, own = config.with_(logic={"widths": [64, 1600]}), {"widths": [64, 1600], "temperature": 2.0}
    assert (config.logic.temperature, wide.logic.temperature, wide.logic.final_temperature) == (1000**0.5 / 20, 1, 1)
    assert config.with_(logic=own).logic.temperature == 2.0
    assert config.with_(logic={"widths": [2]}).logic.temperature == 0.05, "a class has less than a gate"
    assert config.with_(logic={"bits": 3}).logic.temperature == config.logic.temperature
    with pytest.raises(ConfigError, match="1 to 64 layers"):
        config.with_(logic={"widths": []})


def test_rows_with_other_columns_and_labels(file, trained, tmp_path, capsys):
    function = trained / "function.json"
    x, labels = rows(30, 6)
    # Columns in another order, one more, and a label that it never saw: the rows with it are never right.
    labels = np.where(np.arange(30) < 1, "unseen", labels)
    columns = np.c_[x[:, [2, 1, 0]], np.arange(30)]
    other = csv_of(tmp_path / "other.csv", columns, labels, "noise,height,width (cm),n,kind")
    code, told = refusal(capsys, "evaluate", function, "--data", other)
    assert (code, "which column contains the labels?" in told) == (2, True)
    found = difflogic.evaluate(function, data=load_table(other, "kind"))
    assert found["accuracy"].values["right"] == int((decided(function, x) == labels).sum())
    assert found["accuracy-other labels"].values["right"] == 0
    less = csv_of(tmp_path / "less.csv", x[:, :2], labels, "noise,height,kind")
    with pytest.raises(DataError, match="lacks the column width_cm"):
        difflogic.evaluate(function, data=load_table(less, "kind"))
    for more, sentence in (
        ((), "contains no rows: give --data FILE"),
        (("--data", other, "--label", "kind", "--starts", 3), "--starts does not apply to the classifier"),
        (("--data", other, "--label", "kind", "--html", tmp_path / "page.html"), "--html does not apply"),
    ):
        code, told = refusal(capsys, "evaluate", function, *more)
        assert (code, sentence in told) == (2, True), told


REFUSED = {
    "a,b\n1,x\n2,y\n": ("kind", "there is no column 'kind'"),
    "a,kind\n": ("kind", "no row below the names"),
    "a,kind\n1,x\n,y\n": ("kind", "row 3 has no value in the column a: fill it in"),
    "a,kind\n1,x\nred,y\n": ("kind", "row 3 has 'red' in the column a, but features must be finite numbers"),
    "a,kind\n1,x\n2\n": ("kind", "row 3 has 1 values, but there are 2 columns"),
    "a,kind\n1,x\n2,x\n3,x\n": ("kind", "The label kind is x in all 3 rows"),
    "a,kind\n1,x\n2,x\n3,y\n": ("kind", "The label kind has 2 values, of which y is in 1 rows"),
    "a,kind\n" + "1,x\n" * 3 + "1,y\n" * 3: ("kind", "All rows have the same features"),
    "a,kind\n1,x\ninf,y\n" + "1,x\n2,y\n" * 3: ("kind", "row 3 has 'inf' in the column a"),
    "a,kind\n\n1,x\n\nred,y\n": ("kind", "row 5 has 'red'"),
    "a b,a_b,kind\n1,1,x\n": ("kind", "'a b' and 'a_b' are too similar"),
    "a,kind\n1e39,x\n": ("kind", "'1e39' in the column a, but features must be at most 3.4e+38 in size"),
    "a;b;kind\n1,5;1.5;x\n": ("kind", "it contains '1,5' and '1.5': write decimals with commas only"),
    "a\tkind\n1,5\tx\n": ("kind", "row 2 has '1,5' in the column a, but features must be finite numbers: write"),
    'a,kind\n"1,320.0",x\n': ("kind", "write decimals with a point, and thousands without a separator"),
    "a,kind\ntrue,x\nyes,y\n": ("kind", "row 2 has 'true' in the column a"),
    "a,a\n1,2\n": ("a", "Two columns are named 'a' in the first row"),
    "": ("kind", "It is empty: expected a first row"),
    "kind\nx\n": ("kind", "The first row names one column, 'kind'"),
    "a,,kind\n1,2,x\n": ("kind", "Column 2 has no name in the first row"),
    "a kind\n1 x\n": ("kind", "separated by spaces: expected commas"),
    "a|kind\n1|x\n": ("kind", "separated by vertical bars: expected commas"),
    "% a remark\n@RELATION sizes\n": ("kind", "It is an ARFF file: save it as .csv"),
    "1 1:0.5 3:2\n": ("kind", "It is a LIBSVM file: save it as .csv"),
}


@pytest.mark.parametrize(("text", "label", "sentence"), [(text, *told) for text, told in REFUSED.items()])
def test_a_table_that_cannot_be_learned_is_refused_in_one_sentence(tmp_path, capsys, text, label, sentence):
    file = tmp_path / "bad.csv"
    file.write_text(text, encoding="utf-8")
    code, told = refusal(capsys, "train", "--data", file, "--label", label, "--out", tmp_path / "run")
    assert (code, sentence in told, told.count("\n")) == (2, True, 1), told
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("text", "features", "x", "warning"),
    [
        (",a,kind\n7,1,x\n3,2,y\n", ("a",), [[1], [2]], "The first column"),
        ("Unnamed: 0,a,kind\n0,1,x\n1,2,y\n", ("a",), [[1], [2]], "The first column"),
        (
            "id,kind\n" + "".join(f"{k},{'xy'[k % 2]}\n" for k in range(5, 14)),
            ("id",),
            [[k] for k in range(5, 14)],
            "The column id",
        ),
        ("a,b,kind\nTrue,no,x\nFALSE,Yes,y\n", ("a", "b"), [[1, 0], [0, 1]], ""),
        ("a;kind\n-1,5;1,0\n2;2,0\n,5e1;1\n", ("a",), [[-1.5], [2], [5]], ""),
        ("sep=|\na|kind\n1|x\n2|y\n", ("a",), [[1], [2]], ""),
    ],
)
def test_a_table_is_read_as_other_programs_write_it(tmp_path, capsys, text, features, x, warning):
    (tmp_path / "rows.csv").write_text(text, encoding="utf-8-sig")
    table = load_table(tmp_path / "rows.csv", "kind")
    assert (table.features, table.x.tolist(), len(table.classes)) == (features, x, 2)
    said = capsys.readouterr().err
    assert (bool(said), warning in said) == (bool(warning), True)


def test_what_means_nothing_to_a_classifier_is_refused(file, tmp_path, capsys):
    asked = ("train", "--data", file, "--label", "kind", "--out", tmp_path / "run")
    for more, sentence in (
        (("lizard",), "give --data FILE, and no PRESET"),
        (("--until-solved",), "Expected an agent, got a classifier"),
        (("--algorithm", "ppo"), "--algorithm is for agents, but this trains a classifier"),
        (("--epochs", 3), "--epochs is for automata"),
        (("--set", "logic.widths=[8, 8]"), "a multiple of 3"),
    ):
        code, told = refusal(capsys, *asked, *more)
        assert (code, sentence in told) == (2, True), told
    assert not (tmp_path / "run").exists()
    for less, sentence in (
        (("--label", "kind", "lizard"), "--label requires a table"),
        (("--label", "kind"), "--label requires a table"),
        (("--data", file), "Give --label with one of width (cm), height, noise, kind"),
    ):
        code, told = refusal(capsys, "train", *less)
        assert (code, sentence in told) == (2, True), told
    with pytest.raises(UsageError, match="got none: pass the table"):
        difflogic.fit(of_table(load_table(file, "kind")))


def test_arrays_are_learned_from_python_and_from_npz(tmp_path):
    x, labels = rows()
    np.savez(tmp_path / "rows.npz", pixels=x, digit=np.where(labels == "high", 7, 3))
    read = load_table(tmp_path / "rows.npz", "digit")
    made = LabelledTable.of(x, np.where(labels == "high", 7.0, 3.0), label="digit")
    assert (read.sha256, read.classes, read.features) == (made.sha256, ("class_3", "class_7"), ("x0", "x1", "x2"))
    config = of_table(made).with_(steps=9000, logic={"widths": [64, 64]}, table={"batch_size": 32})
    ended = difflogic.fit(fitted(config, made), table=made, engine="cpu")
    assert ended.score > 0.8
    assert ended.best.environments.table is made
    few = config.with_(steps=200, table={"held_out": 0.0})
    assert "of 240 rows learned;" in difflogic.fit(few, table=made, engine="cpu").summary


def test_dense_layers_and_the_rows_of_another_run(file, tmp_path):
    path = tmp_path / "dense"
    run("train", "--data", file, "--label", "kind", "--policy", "mlp", "--out", path, "--steps", 9000)
    assert difflogic.evaluate(path)["accuracy"].values["accuracy"] > 0.7
    assert not (path / "function.json").exists()
    x, labels = rows(seed=8)
    (path / "data.npz").write_bytes(LabelledTable.of(x, labels, ["a", "b", "c"], "kind").encode())
    with pytest.raises(DataError, match="are not those of the run"):
        difflogic.evaluate(path)
    with pytest.raises(ConfigError, match="neither episodes"):
        PolicyConfig.load(path / "config.toml").require_episodes()


def idx(*arrays: np.ndarray, dtype: str = "u1", code: int = 8) -> list[bytes]:
    """IDX files of arrays, as MNIST has them."""
    return [struct.pack(f">HBB{x.ndim}I", 0, code, x.ndim, *x.shape) + x.astype(dtype).tobytes() for x in arrays]


@pytest.fixture(scope="module")
def images(tmp_path_factory) -> Path:
    """A folder with 300 images of 3x3 pixels to learn and 80 to test, bright in one of two halves."""
    folder = tmp_path_factory.mktemp("images")
    x = np.random.default_rng(1).integers(0, 256, (380, 3, 3))
    y = (x[:, 0].sum(1) > x[:, 2].sum(1)).astype(np.uint8)
    for name, part in (("train", slice(300)), ("t10k", slice(300, 380))):
        files = dict(zip(("images-idx3", "labels-idx1"), idx(x[part], y[part]), strict=True))
        for kind, content in files.items():
            file = folder / f"{name}-{kind}-ubyte"
            file.write_bytes(content) if name == "t10k" else Path(f"{file}.gz").write_bytes(gzip.compress(content))
    return folder


def test_test_set_of_idx_files_is_evaluated_once_and_every_other_row_learned(images, tmp_path, capsys):
    learned, test = images / "train-images-idx3-ubyte.gz", images / "t10k-images-idx3-ubyte"
    path, asked = tmp_path / "run", ("train", "--data", learned, "--test", test)
    run(*asked, "--out", path, *SMALL)
    table, config = load_table(learned).with_test(load_table(test)), PolicyConfig.load(path / "config.toml")
    assert (table.x.dtype, len(table)) == (np.uint8, 380)
    parts = table.parts(config.table)
    assert [part.tolist() for part in parts] == [[*range(300)], [], [*range(300, 380)]]
    right = int((decided(path / "function.json", table.x[300:]) == np.array(table.classes)[table.y[300:]]).sum())
    assert right >= 60
    assert f"{right} of 80 rows of the test set" in (path / "summary.txt").read_text()
    assert f"{right} of 80 rows of the test set" in run("evaluate", path)
    assert f"{right} of 80 rows given" in run("evaluate", path / "function.json", "--data", test)
    twin = difflogic.fit(of_table(table), table=load_table(learned), test=load_table(test), set={"steps": 256})
    assert (len(twin.best.score.returns), twin.best.environments.parts.learned.size) == (80, 300)
    for more, sentence in (
        (("--set", "table.held_out=0.1"), "table.held_out must be 0 with a test set"),
        (("--resume", path), "omit --data, --test"),
        (("lizard",), "--test requires a table"),
    ):
        assert sentence in refusal(capsys, *asked, *more)[1]
    with pytest.raises(DataError, match=r"rows of the class class_2, but .* such as class_0, class_1"):
        table.with_test(LabelledTable.of(np.zeros((2, 9)), [1, 2]))
    with pytest.raises(UsageError, match="give that too"):
        difflogic.fit(test=table)


@pytest.mark.parametrize("dtype", [np.uint8, np.float64])
def test_shifted_images_are_windows_of_the_padded_image(dtype):
    image = np.random.default_rng(2).integers(1, 256, (5, 5)).astype(dtype)
    padded = np.pad(image, 2)
    windows = [padded[y : y + 5, x : x + 5].tobytes() for y in range(5) for x in range(5)]
    shifted = classifier.shifted(np.repeat(image.reshape(1, 25), 4000, axis=0), 2, np.random.default_rng(3))
    assert (shifted.dtype, shifted.shape) == (dtype, (4000, 25))
    counts = np.bincount([windows.index(row.tobytes()) for row in shifted], minlength=25)
    unshifted = 1 - classifier.SHIFTED * 24 / 25
    assert counts.min() > 0
    assert abs(counts[12] / 4000 - unshifted) < 0.05


def test_a_classifier_that_shifts_images_knows_them_in_other_places_and_resumes(tmp_path):
    bars = np.array([[1, 1, 1], [0, 0, 0], [1, 1, 1]])
    centred = np.pad(np.tile([bars, bars.T], (50, 1, 1)), ((0, 0), (1, 1), (1, 1)))
    moved = np.concatenate([np.roll(centred[:20], (y, x), (1, 2)) for y in (-1, 0, 1) for x in (-1, 0, 1)])
    noise = np.random.default_rng(4).integers(0, 60, (280, 5, 5))
    x = (noise + 190 * np.concatenate([centred, moved])).astype(np.uint8).reshape(-1, 25)
    names = ["horizontal", "vertical"] * 140
    table, test = (LabelledTable.of(x[part], names[part]) for part in (slice(100), slice(100, None)))
    scores = {}
    for shift in (0, 1):
        fields = {"table": {"batch_size": 20, "shift": shift}, "logic": {"widths": [400, 400], "bits": 1}}
        out = tmp_path / str(shift)
        whole = difflogic.fit(table=table, test=test, engine="cpu", set=fields | {"steps": 9000}, out=out)
        scores[shift] = whole.score
    assert scores[1] > scores[0] + 0.15, scores
    difflogic.fit(table=table, test=test, engine="cpu", set=fields | {"steps": 3000}, out=tmp_path / "part")
    again = difflogic.fit(resume=tmp_path / "part", steps=9000)
    for name, array in whole.best.agent.state().items():
        np.testing.assert_array_equal(again.best.agent.state()[name], array, err_msg=name)
    with pytest.raises(ConfigError, match="side of square images, got 5 with 25 features"):
        difflogic.fit(table=table, set={"table": {"shift": 5}})
    with pytest.raises(ConfigError, match="got 1 with 3 features"):
        difflogic.fit(table=LabelledTable.of(*rows()), set={"table": {"shift": 1}})


def test_hash_of_bytes_equals_hash_of_the_same_floats():
    x = np.arange(20000).reshape(5000, 4) % 251
    tables = [LabelledTable.of(x.astype(dtype), x[:, 0] % 2) for dtype in (np.uint8, np.float32)]
    assert tables[0].sha256 == tables[1].sha256
    config = of_table(tables[0])
    assert fitted(config, tables[0]) == fitted(config, tables[1])
    seen = [difflogic.policies.classifier.Rows(config, table).seen() for table in tables]
    assert np.array_equal([seen[0].mean, seen[0].spread], [seen[1].mean, seen[1].spread])


IMAGE = np.arange(12).reshape(3, 2, 2)


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (idx(IMAGE)[0][:-1], "expected 12 bytes of values after the header, got 11"),
        (idx(IMAGE)[0] + b"0", "expected 12 bytes of values after the header, got 13"),
        (
            struct.pack(">HBB3I", 0, 8, 3, *[2**32 - 1] * 3),
            f"expected {(2**32 - 1) ** 3} bytes of values after the header, got 0",
        ),
        (struct.pack(">HBB", 0, 8, 200), "unpack_from requires a buffer of at least 804 bytes"),
        (struct.pack(">HBB65I", 0, 8, 65, *[1] * 65) + b"0", "dimension"),
        (idx(IMAGE, code=7)[0], "its first bytes are not those of an IDX file"),
        (gzip.compress(idx(IMAGE)[0], mtime=0)[:-9], "ended before the end-of-stream marker"),
    ],
)
def test_damaged_idx_file_is_refused(tmp_path, content, sentence):
    file = tmp_path / f"a-images-idx3-ubyte{'.gz' * content.startswith(bytes([31, 139]))}"
    file.write_bytes(content)
    Path(str(file).replace("images", "labels").replace("idx3", "idx1")).write_bytes(content)
    with pytest.raises(DataError, match=sentence):
        load_table(file)


@pytest.mark.parametrize(("code", "dtype"), [(8, "u1"), (9, "i1"), (11, ">i2"), (12, ">i4"), (13, ">f4"), (14, ">f8")])
def test_idx_values_of_every_type_are_read(tmp_path, code, dtype):
    (tmp_path / "images").write_bytes(idx(IMAGE, code=code, dtype=dtype)[0])
    with pytest.raises(DataError, match="put a file of labels next to it"):
        load_table(tmp_path / "images")
    (tmp_path / "labels").write_bytes(idx(np.arange(3))[0])
    assert load_table(tmp_path / "images").x.tolist() == IMAGE.reshape(3, 4).tolist()


@pytest.mark.parametrize("suffix", [".csv", ".npz"])
def test_compressed_table_is_read_as_it_is(file, tmp_path, suffix):
    x, labels = rows()
    if suffix == ".npz":
        np.savez(tmp_path / "a.npz", kind=labels, x=x)
    content = file.read_bytes() if suffix == ".csv" else (tmp_path / "a.npz").read_bytes()
    (tmp_path / f"a{suffix}.gz").write_bytes(gzip.compress(content))
    assert np.array_equal(load_table(tmp_path / f"a{suffix}.gz", "kind").x, x)


def test_thresholds_are_between_values_and_at_quantiles():
    x = np.r_[np.zeros(50), np.arange(50)][:, None]
    table = LabelledTable.of(np.c_[x, np.ones(100)], ["a", "b"] * 50)
    found = table.thresholds(np.arange(100), 3)
    assert found == [[0.5, 24.5], []]
    assert LabelledTable.of(np.c_[x % 2], ["a", "b"] * 50).thresholds(np.arange(100), 7) == [[0.5]]


def test_the_commands_of_the_page_do_what_it_says(file, tmp_path, monkeypatch):
    text = (Path(__file__).parents[2] / "docs/how-to/classify.md").read_text(encoding="utf-8")
    lines = re.findall(r"^    difflogic (?!train --data train-images)(.*)$", text, re.MULTILINE)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "species.csv").write_text(file.read_text().replace("kind", "species"))
    tiny = (*SMALL, "--set", "logic.widths=[30, 30]", "--set", "logic.bits=3")
    told = [run(*shlex.split(line, comments=True), *(tiny if line.startswith("train") else ())) for line in lines]
    assert [line.split()[0] for line in lines] == ["train", "evaluate", "simplify", "export", "evaluate"]
    x, labels = rows()
    small = decided(tmp_path / "small.json", x)
    assert np.array_equal(small, decided(tmp_path / "runs/species/function.json", x))
    assert "Proved equal" in told[2]
    assert f"{(small == labels).sum()} of 240 rows given" in told[4]
    assert "small_classify" in (tmp_path / "small.h").read_text()
