"""The engines and the small model of tests/train."""

from __future__ import annotations

from tests.train.conftest import engine, epoch_by_epoch

__all__ = ["engine", "epoch_by_epoch"]
