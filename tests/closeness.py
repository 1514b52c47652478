"""The comparisons that several files make."""

from typing import Any

import numpy as np

from difflogic.model.circuit import ArraysByNetwork
from tests import tolerances

STATES: dict[str, Any] = {"rtol": tolerances.STATE_RTOL, "atol": tolerances.STATE_ATOL}


def assert_gradients_close(
    got: ArraysByNetwork, expected: ArraysByNetwork, share: float = tolerances.GRADIENT_SHARE
) -> None:
    """Every entry within `share` of the largest of its layer."""
    for network, layers in expected.items():
        assert len(got[network]) == len(layers)
        for layer, (ours, theirs) in enumerate(zip(got[network], layers, strict=True)):
            error, largest = np.abs(ours - theirs).max(), np.abs(theirs).max()
            assert error <= share * largest, f"{network} {layer}: {error} of {largest}"


def assert_first_step_close(ours: np.ndarray, theirs: np.ndarray, mu: np.ndarray, lr: float) -> None:
    """Logits after AdamW's first step, whose first moments `mu` show the gradients.

    It divides each gradient by its own size: one that is hardly larger than the gradients' tolerance keeps little
    but its sign, and one that is smaller not even that.
    """
    clear = np.abs(mu) > 10 * tolerances.GRADIENT_SHARE * np.abs(mu).max()
    assert clear.any()
    np.testing.assert_allclose(ours[clear], theirs[clear], rtol=0, atol=tolerances.STEP_ATOL_OWN_GRADIENTS)
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=2.1 * lr)
