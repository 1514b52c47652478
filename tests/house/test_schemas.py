"""The JSON Schemas describe what difflogic writes: the files of a run, a proof and a controller, and refuse others."""

import json
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

import difflogic
from difflogic import Circuit, FunctionNetlist
from difflogic.evaluation import evaluate, proof
from difflogic.evaluation.trained_circuit import load
from difflogic.model import function_json
from tests.controllers import linear_rule, remembering_controller
from tests.train.tiny import tiny_config

SCHEMAS = Path(__file__).resolve().parents[2] / "docs/reference/schemas"
NAMES = sorted(path.name.removesuffix(".schema.json") for path in SCHEMAS.iterdir())


def validator(name: str) -> Any:
    return jsonschema_rs.validator_for(json.loads((SCHEMAS / f"{name}.schema.json").read_text(encoding="utf-8")))


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Any]]:
    folder = tmp_path_factory.mktemp("run") / "run"
    engine = difflogic.open_engine("reference")
    difflogic.Trainer(tiny_config(epochs=2), engine).run(out=folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(evaluate, "TESTS", evaluate.TESTS[:5])
        evaluation = evaluate.evaluate(folder, engine, starts=1)
    proved = proof.decide(proof.of_run(load(folder)))
    files = {name: [json.loads((folder / name).read_text())] for name in ("circuit.json", "manifest.json")}
    circuit, controllers = Circuit.feed_forward([4, 4, 4], 0), (linear_rule(), remembering_controller(2))
    functions = [FunctionNetlist.from_circuit(circuit, classes=classes) for classes in (None, 2)]
    return files | {
        "metrics.jsonl": [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()],
        "evaluation.json": [evaluation.to_dict()],
        "proof.json": [proved.to_dict()],
        "controller.json": [json.loads(function_json.to_json(each)) for each in controllers],
        "function.json": [json.loads(function_json.to_json(each)) for each in functions],
    }


@pytest.mark.parametrize("name", NAMES)
def test_written_files_fit_their_schemas(name: str, written: dict[str, list[Any]]) -> None:
    schema = validator(name)
    assert written[name]
    for data in written[name]:
        schema.validate(data)
        for lost in json.loads((SCHEMAS / f"{name}.schema.json").read_text())["required"]:
            assert not schema.is_valid({key: value for key, value in data.items() if key != lost}), lost


def test_every_written_format_has_a_schema(written: dict[str, list[Any]]) -> None:
    assert sorted(written) == NAMES


@pytest.mark.parametrize(
    "change", [{"channels": 0}, {"gates": [{"id": "g0", "gate": 16, "a": "g0", "b": "g0"}]}, {"colour": 3}]
)
def test_schema_refuses_files_without_a_circuit(change: dict[str, Any], written: dict[str, list[Any]]) -> None:
    assert not validator("circuit.json").is_valid(written["circuit.json"][0] | change)
