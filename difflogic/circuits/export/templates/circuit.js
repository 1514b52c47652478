"use strict";
// The circuit as it is drawn: `circuit.lines` are its gates, and marks and wires of the drawing carry the number of a bit.
const element = (id) => document.getElementById(id);
const svg = document.querySelector("#circuit svg");
if (svg) {
    const width = Number(svg.getAttribute("width"));
    Object.assign(svg.style, { width: "100%", height: "auto", minWidth: `${0.75 * width}px`, maxWidth: `${width}px` });
}
const marks = [...document.querySelectorAll("#circuit [data-bit]")];

// Every bit, from those of the inputs, gate by gate: a gate's id is its truth table, 00, 01, 10, 11 from the highest bit.
function withGates(values) {
    for (const [bit, gate, a, b] of circuit.lines) values[bit] = (gate >> (3 - 2 * values[a] - values[b])) & 1;
    return values;
}

function light(values) {
    for (const mark of marks) mark.classList.toggle("on", (values[mark.dataset.bit] ^ Number(mark.dataset.inverted ?? 0)) === 1);
}
