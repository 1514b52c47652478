"""The engines and the small model of tests/train."""

from tests.train.conftest import complete, config, engine, epoch_by_epoch, finished, whole

__all__ = ["complete", "config", "engine", "epoch_by_epoch", "finished", "whole"]
