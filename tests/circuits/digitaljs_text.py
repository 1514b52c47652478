"""The paper's checkerboard circuit in DigitalJS JSON, with the devices, ids and labels that its article uses."""

from typing import Any

GATES = {
    "l_3_124": ("And", "i_6", "i_6"),
    "l_1_96": ("Or", "i_9", "i_17"),
    "l_1_196": ("Or", "i_18", "i_26"),
    "l_3_54": ("Or", "l_1_196", "i_33"),
    "l_14_4": ("AAndNotB", "l_3_54", "i_24"),
    "l_16_6": ("Not", "l_14_4"),
}
OUTPUTS = {0: "l_16_6", 1: "l_1_96", 2: "l_3_124", 3: "i_0", 4: "i_62", 5: "i_0", 6: "i_42", 7: "i_69"}


def published() -> dict[str, Any]:
    """Return `ch0 = NOT(((in[2,0] OR in[2,8]) OR in[3,6]) AND NOT in[2,6])` and the other channels."""
    devices: dict[str, Any] = {}
    connectors: list[Any] = []
    for channel, source in OUTPUTS.items():
        devices[f"o_{channel}"] = {"label": f"o: ch {channel}", "type": "Output", "bits": 1, "order": channel}
        connectors.append(connector(source, f"o_{channel}", "in"))
    for name, (kind, *sources) in GATES.items():
        devices[name] = {"label": "", "type": kind, "propagation": 1, "bits": 1, "inputs": len(sources)}
        ports = ["in"] if kind == "Not" else ["in1", "in2"]
        connectors += [connector(source, name, port) for source, port in zip(sources, ports, strict=True)]
    for name in {source for pair in connectors if (source := pair["from"]["id"]).startswith("i_")}:
        channel, patch = divmod(int(name[2:]), 9)
        devices[name] = {"label": f"i: ch {channel}, pos {patch}", "type": "Button", "bits": 1, "order": int(name[2:])}
    return {"devices": devices, "connectors": connectors, "subcircuits": {}}


def connector(source: str, target: str, port: str) -> dict[str, Any]:
    return {"from": {"id": source, "port": "out"}, "to": {"id": target, "port": port}}
