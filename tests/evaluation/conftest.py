"""The engines and the small model of tests/train."""

from tests.train.conftest import complete, engine, epoch_by_epoch, whole

__all__ = ["complete", "engine", "epoch_by_epoch", "whole"]
