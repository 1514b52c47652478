"""Training step of a logic gate network in another library, run in the environment of that library.

The command is `PYTHON foreign_network.py LIBRARY cpu|gpu LAYERS WIDTH`, with the protocol of `worker.py`. LIBRARY is
`torchlogix`, `torchlogix_compiled` or `difflogic`. The last is Petersen's package, which has the name of this package:
so this file imports nothing of this project, and its process runs outside the checkout.
"""

from __future__ import annotations

import json
import sys
import time
import types
from typing import Any

BATCH, BITS, CLASSES = 256, 784, 10


def network(library: str, device: str, layers: int, width: int) -> Any:
    """Return the PyTorch module from bits to class scores, with the library's defaults."""
    import torch

    if library == "difflogic":
        from difflogic import GroupSum, LogicLayer  # type: ignore[attr-defined]

        implementation = "cuda" if device == "cuda" else "python"

        def layer(inputs: int) -> Any:
            return LogicLayer(inputs, width, device=device, implementation=implementation)
    else:
        # torchlogix's exports to C use syntax of Python 3.12; training does not need these exports.
        stub = types.ModuleType("torchlogix.circuit")
        stub.Circuit = None  # type: ignore[attr-defined]
        sys.modules["torchlogix.circuit"] = stub
        from torchlogix.layers import GroupSum, LogicDense

        def layer(inputs: int) -> Any:
            return LogicDense(inputs, width, device=device)

    widths = [BITS, *[width] * (layers - 1)]
    made = torch.nn.Sequential(*map(layer, widths), GroupSum(CLASSES, (width / CLASSES) ** 0.5)).to(device)
    return torch.compile(made) if library.endswith("_compiled") else made


def main() -> None:
    library, place, layers, width = sys.argv[1:]
    begin = time.perf_counter()
    try:
        import torch

        device = "cuda" if place == "gpu" else "cpu"
        torch.manual_seed(0)
        net = network(library, device, int(layers), int(width))
        x = torch.randint(0, 2, (BATCH, BITS), device=device).float()
        y = torch.randint(0, CLASSES, (BATCH,), device=device)
        adam = torch.optim.Adam(net.parameters(), lr=0.001)

        def step() -> torch.Tensor:
            adam.zero_grad()
            loss = torch.nn.functional.cross_entropy(net(x), y)
            loss.backward()
            adam.step()
            return loss.detach()

        first = float(step())
        losses = [first, *(float(step()) for _ in range(4))]
    except (ImportError, OSError, RuntimeError, SyntaxError, TypeError, ValueError) as error:
        print(json.dumps({"failed": f"{type(error).__name__}: {str(error).strip().splitlines()[0]}"}), flush=True)
        return
    failed = None if losses[-1] < first else f"the loss does not fall: {losses}"
    name = torch.cuda.get_device_name() if device == "cuda" else "cpu"
    about = {"device": f"{name}, torch {torch.__version__.partition('+')[0]}", "losses": losses}
    print(json.dumps({"failed": failed, "open_s": time.perf_counter() - begin, **about}), flush=True)
    for line in sys.stdin:
        begin, count = time.perf_counter(), int(line)
        for _ in range(count):
            loss = step()
        float(loss)  # waits for the device
        print(json.dumps({"seconds": (time.perf_counter() - begin) / count}), flush=True)
    import resource

    print(json.dumps({"peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3}), flush=True)


if __name__ == "__main__":
    main()
