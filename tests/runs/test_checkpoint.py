"""Checkpoint files: what comes back, and that no damage goes unnoticed."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import safetensors.numpy
from hypothesis import given
from hypothesis import strategies as st
from safetensors.numpy import save

from difflogic.engine.job import OptimizerState, TrainState
from difflogic.errors import CheckpointError
from difflogic.model.circuit import Circuit
from difflogic.runs import checkpoint, checksummed
from difflogic.runs.checkpoint import Checkpoint, ModelState
from tests.tasks import task_job
from tests.train.tiny import tiny_config

FILE = Path("some") / checkpoint.NAME


def make(epoch: int = 7, best: int | None = 3) -> ModelState:
    config = tiny_config()
    circuit = Circuit.initial(config.model, config.seed)
    rng = np.random.default_rng(epoch)
    logits, mu, nu = (rng.standard_normal((circuit.gates, 16)).astype(np.float32) for _ in range(3))
    keys = rng.integers(0, 2**32, (2, 2), dtype=np.uint32)
    state = TrainState(logits, OptimizerState(mu, nu, epoch - 1), keys[0], keys[1], epoch, 1)
    return ModelState(config, circuit.with_logits(logits), state, best, 1.25)


def alone(epoch: int = 7) -> Checkpoint:
    return Checkpoint((make(epoch),))


BYTES = alone().encode()


@pytest.mark.parametrize("best", [None, 0, 3])
def test_everything_comes_back(best: int | None, tmp_path: Path) -> None:
    before = make(best=best)
    checkpoint.save(tmp_path, Checkpoint((before,)))
    after = checkpoint.load(tmp_path)
    assert after.config == before.config
    assert (after.best, after.elapsed_s, after.state.skipped) == (best, 1.25, 1)
    for left, right in (
        (after.state.logits, before.state.logits),
        (after.state.optimizer.mu, before.state.optimizer.mu),
        (after.state.optimizer.nu, before.state.optimizer.nu),
        (after.state.data_key, before.state.data_key),
        (after.state.train_key, before.state.train_key),
        (after.circuit.flat_logits(), before.state.logits),
    ):
        assert left.dtype == right.dtype
        assert np.array_equal(left, right)
    for name, layers in before.circuit.wires.items():
        assert all(np.array_equal(a, b) for a, b in zip(layers, after.circuit.wires[name], strict=True))


@pytest.mark.parametrize("name", ["a pool", "a pool of boards", "everything"])
def test_a_pool_comes_back_bit_for_bit(name: str, tmp_path: Path) -> None:
    jobs = [task_job(name, seed) for seed in (1, 2)]
    states = [TrainState.initial(job) for job in jobs]
    noise = np.random.default_rng(3)
    pools = [noise.integers(0, 2, state.pool.shape, dtype=np.uint8) for state in states]
    members = tuple(
        ModelState(job.config, job.circuit, replace(state, pool=pool))
        for job, state, pool in zip(jobs, states, pools, strict=True)
    )
    for kept in (members[:1], members):
        checkpoint.save(tmp_path, Checkpoint(kept))
        for member, pool in zip(checkpoint.read(tmp_path).members, pools, strict=False):
            assert (member.state.pool.dtype, member.state.pool.tolist()) == (pool.dtype, pool.tolist())


def test_a_pool_of_another_size_is_refused() -> None:
    job = task_job("a pool")
    state = TrainState.initial(job)
    for pool in (state.pool[:4], None):
        cut = Checkpoint((ModelState(job.config, job.circuit, replace(state, pool=pool)),)).encode()
        with pytest.raises(CheckpointError, match="does not contain a usable run: "):
            checkpoint.decode(cut, FILE)


def test_the_one_before_is_kept(tmp_path: Path) -> None:
    for epoch in (1, 2, 3):
        checkpoint.save(tmp_path, alone(epoch))
    assert sorted(path.name for path in tmp_path.iterdir()) == [checkpoint.PREVIOUS, checkpoint.NAME]
    assert checkpoint.load(tmp_path).state.epoch == 3
    assert checkpoint.load(tmp_path / checkpoint.PREVIOUS).state.epoch == 2


def test_equal_checkpoints_are_equal_bytes() -> None:
    """Whatever order the library has for the metadata; and another program reads them, arrays where they belong."""
    arrays = {"b": np.arange(3, dtype=np.uint8), "a": np.arange(5.0)}
    files = {checksummed.encode(arrays, dict.fromkeys("zyxwvu", "é\n")) for _ in range(9)}
    assert len(files) == 1
    (data,) = files
    assert int.from_bytes(data[:8], "little") % 8 == 0
    read = safetensors.numpy.load(data)
    assert all(np.array_equal(read[name], array) for name, array in arrays.items())
    assert checksummed.metadata(data)["z"] == "é\n"


@given(st.integers(0, len(BYTES) - 1), st.integers(1, 255))
def test_any_changed_byte_is_noticed(position: int, change: int) -> None:
    data = bytearray(BYTES)
    data[position] ^= change
    with pytest.raises(CheckpointError):
        checkpoint.decode(bytes(data), FILE)


def test_the_header_is_covered() -> None:
    """Every fifth byte of it: all of its lines, names, shapes and offsets."""
    header = int.from_bytes(BYTES[:8], "little")
    for position in range(0, 8 + header, 5):
        data = bytearray(BYTES)
        data[position] ^= 1 << position % 8
        with pytest.raises(CheckpointError):
            checkpoint.decode(bytes(data), FILE)


@given(st.integers(0, len(BYTES) - 1))
def test_any_truncation_is_noticed(length: int) -> None:
    with pytest.raises(CheckpointError):
        checkpoint.decode(BYTES[:length], FILE)


@pytest.mark.parametrize("junk", [b"", b"\x00", b"not a checkpoint at all", b"\xff" * 64, BYTES + b"\x00"])
def test_junk_is_refused(junk: bytes) -> None:
    with pytest.raises(CheckpointError):
        checkpoint.decode(junk, FILE)


def test_damage_is_named(tmp_path: Path) -> None:
    checkpoint.save(tmp_path, alone(1))
    data = bytearray(BYTES)
    data[-1] ^= 1
    (tmp_path / checkpoint.NAME).write_bytes(data)
    with pytest.raises(CheckpointError) as caught:
        checkpoint.load(tmp_path)
    message = str(caught.value)
    assert "is corrupt: the array" in message
    assert "does not match its checksum" in message
    assert message.endswith("Restore the file from a backup, or start a new run.")
    (tmp_path / checkpoint.NAME).write_bytes(BYTES[:-5])
    with pytest.raises(CheckpointError, match="is corrupt: it is truncated or its header is damaged"):
        checkpoint.load(tmp_path)


def test_both_damaged(tmp_path: Path) -> None:
    for epoch in (1, 2):
        checkpoint.save(tmp_path, alone(epoch))
    for name in (checkpoint.NAME, checkpoint.PREVIOUS):
        (tmp_path / name).write_bytes(b"")
    with pytest.raises(CheckpointError, match="is not usable either: start a new run"):
        checkpoint.load(tmp_path)


def test_another_format_names_its_writer() -> None:
    arrays = checksummed.decode(BYTES)
    data = checksummed.encode(arrays, {"format": "2", "difflogic": "9.1.0", "config": ""})
    with pytest.raises(CheckpointError) as caught:
        checkpoint.decode(data, FILE)
    assert "was written by difflogic 9.1.0 in format 2" in str(caught.value)
    assert "expects format 1" in str(caught.value)


def test_a_foreign_safetensors_file_is_refused() -> None:
    with pytest.raises(
        CheckpointError, match="is not a difflogic checkpoint, but contains tensors of another program: "
    ):
        checkpoint.decode(save({"x": np.zeros(3)}, metadata={"format": "pt"}), FILE)


def test_an_incomplete_run_is_refused() -> None:
    arrays = checksummed.decode(BYTES)
    metadata = checksummed.metadata(BYTES)
    header = {name: metadata[name] for name in ("format", "difflogic", "config")}
    without = {name: array for name, array in arrays.items() if name != "mu"}
    with pytest.raises(CheckpointError, match="does not contain a usable run: 'mu'"):
        checkpoint.decode(checksummed.encode(without, header), FILE)
    with pytest.raises(CheckpointError, match="does not contain a usable run"):
        checkpoint.decode(checksummed.encode(arrays | {"logits": np.zeros((3, 16), np.float32)}, header), FILE)
    for name in ("step", "epoch", "best", "skipped", "elapsed_s"):
        pair = {name: np.array([arrays[name]] * 2)}
        with pytest.raises(CheckpointError, match="does not contain a usable run"):
            checkpoint.decode(checksummed.encode(arrays | pair, header), FILE)


def test_a_folder_in_its_place_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / checkpoint.NAME).mkdir()
    with pytest.raises(CheckpointError, match="Cannot read the checkpoint"):
        checkpoint.load(tmp_path)
