"""A server with limits, for two owners."""

from difflogic.serve.api.settings import Caps, ServeSettings
from tests.serve.live import shared

CAPS = Caps(epochs=5000, population=8, hours=1.0, memory=200_000_000, upload=300_000, body=100_000, pixels=256 * 256)
live = shared(ServeSettings(caps=CAPS))
