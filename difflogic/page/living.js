// A solved circuit as the living page of `difflogic export --format html`, whose templates are in this page.

import { gatesOf, plain } from "../circuits/export/templates/drawing.js";
import { plural } from "../serve/web/format.js";

/** Returns the text of the page. @param {HardCircuit} hard @param {string} name */
export function livingPage(hard, name) {
    /** @type {Record<string, any>} as export.py writes it */
    const templates = JSON.parse(document.getElementById("living")?.textContent ?? "");
    const { channels, visible, periodic, neighbourhood = "moore", habitat, difflogic } = JSON.parse(hard.json());
    const circuit = { rows: hard.rows.map(plain), outputs: hard.outputs, channels, visible };
    const gates = gatesOf(hard.rows);
    const about = `difflogic ${difflogic}: ${plural(gates, "gate")}, ${plural(channels, "channel")}, ${visible} visible; the grid ${periodic ? "wraps around" : "is 0 outside"}.`;
    const marks = { name, upper: name.toUpperCase(), about, channels, inputs: 9 * channels };
    const body = statements(circuit, templates.expressions, "let @NAME@ = @VALUE@;", "near[@BIT@]", ["0u", "0xffffffffu"]);
    const data = {
        channels,
        visible,
        periodic,
        neighbourhood,
        origin: Array.from({ length: channels }, (_, c) => c),
        home: habitat ? { ...habitat, ones: [] } : null,
        shader: fill(templates.shader, { ...marks, periodic, body }),
        lines: circuit.rows,
        outputs: hard.outputs,
        gates,
    };
    return fill(templates.page, {
        ...marks,
        style: templates.style,
        data: JSON.stringify(data),
        cell: statements(circuit, templates.expressions, "const @NAME@ = @VALUE@;", "patch[@BIT@]", ["0", "-1"]),
        engines: templates.engines,
        script: templates.script,
    });
}

// Replaces the marks between at signs in a template, as `fill` of difflogic/circuits/export/text.py does.
/** @param {string} template @param {Record<string, unknown>} values */
const fill = (template, values) => template.replace(/@([A-Z_]+)@/g, (_, mark) => String(values[mark.toLowerCase()]));

/**
 * Returns statements for the gates in the operators `~ & | ^`, followed by the results.
 * @param {{ rows: number[][], outputs: number[], channels: number }} circuit
 * @param {string[]} expressions
 * @param {string} assign with the marks NAME and VALUE
 * @param {string} input with the mark BIT
 * @param {string[]} constants 0 and 1
 */
function statements({ rows, outputs, channels }, expressions, assign, input, constants) {
    const name = (/** @type {number} */ bit) => (bit < 9 * channels ? fill(input, { bit }) : `g${bit - 9 * channels}`);
    const value = (/** @type {number} */ gate, /** @type {number} */ a, /** @type {number} */ b) =>
        expressions[gate].replaceAll("{a}", name(a)).replaceAll("{b}", name(b)) || constants[gate & 1];
    const lines = rows.map(([bit, gate, a, b]) => fill(assign, { name: name(bit), value: value(gate, a, b) }));
    return [...lines, ...outputs.map((bit, c) => `result[${c}] = ${name(bit)};`)].join("\n    ");
}
