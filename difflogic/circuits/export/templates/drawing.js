// Draws a circuit: inputs on the left, channels on the right, gates in columns by depth. Pass-throughs and NOT are folded
// into the wires, as in difflogic/circuits/export/drawing.py, but hundreds of gates have to fit: a wire goes straight to its
// reader, behind all between. `data-bit` is the bit that an element shows, so that a page can light it.

export const MOST_DRAWN = 1500; // gates: beyond, neither a browser nor an eye follows
/** @type {Record<number, [string, [number, number]]>} name of a gate and which of its inputs are inverted, as SYMBOLS of drawing.py */
const SYMBOLS = {
    1: ["AND", [0, 0]], 2: ["AND", [0, 1]], 4: ["AND", [1, 0]], 6: ["XOR", [0, 0]], 7: ["OR", [0, 0]],
    8: ["NOR", [0, 0]], 9: ["XNOR", [0, 0]], 11: ["OR", [0, 1]], 13: ["OR", [1, 0]], 14: ["NAND", [0, 0]],
};

const COLUMN = 92,
    ROW = 17,
    BOX = { width: 40, height: 13 },
    MARGIN = { left: 146, right: 128, top: 10 };
const SWEEPS = 12;
const PLACES = ["above left", "above", "above right", "left", "itself", "right", "below left", "below", "below right"];

/** @typedef {{ bit: number, inverted: boolean }} Wire */
/** @typedef {{ bit: number, name: string, reads: Wire[], depth: number, y: number, kind: "input" | "gate" | "output", note?: string }} Part */

/** @typedef {{ rows: number[][], outputs: number[], channels: number, visible: number, origin?: number[] }} Circuit  rows of bit, gate, a, b */

/** Returns the drawing as SVG. @param {Circuit} circuit */
export function drawing(circuit) {
    const parts = placed(partsOf(circuit));
    const columns = Math.max(...parts.map(({ depth }) => depth)) + 1,
        rows = Math.max(...parts.map(({ y }) => y)) + 1;
    const width = MARGIN.left + (columns - 1) * COLUMN + MARGIN.right,
        height = MARGIN.top * 2 + rows * ROW;
    const starts = new Map(parts.filter(({ kind }) => kind !== "output").map((part) => [part.bit, part]));
    const body = [...parts.flatMap((part) => wires(part, starts)), ...parts.map(mark)];
    const head = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}"`;
    return `${head} role="img" aria-label="The circuit: ${gatesOf(circuit.rows)} gates">${body.join("\n")}</svg>`;
}

/** Returns the number of gates with two inputs. @param {number[][]} rows */
export const gatesOf = (rows) => rows.filter((row) => ![0, 3, 12, 15].includes(plain(row)[1])).length;

/** Returns the same gate by the inputs that it depends on: a gate of one input reads `a`, as in difflogic/model/straight_line.py. @param {number[]} row */
export function plain([bit, gate, a, b]) {
    if (gate === 0 || gate === 15) return [bit, gate, 0, 0];
    if (a === b) return [bit, [0, 12, 3, 15][2 * (gate & 1) + (gate >> 3)], a, a];
    if (gate === 5 || gate === 10) return [bit, gate === 5 ? 3 : 12, b, b];
    return gate === 3 || gate === 12 ? [bit, gate, a, a] : [bit, gate, a, b];
}

/** Appends the value of each gate to those of the inputs: a gate's number is its truth table, 00 the highest bit. @param {number[][]} rows @param {number[]} values */
export function withGates(rows, values) {
    for (const [bit, gate, a, b] of rows) values[bit] = (gate >> (3 - 2 * values[a] - values[b])) & 1;
    return values;
}

/** Lights all elements that carry a 1. @param {Element} drawn @param {number[]} values of all bits */
export function light(drawn, values) {
    for (const mark of /** @type {NodeListOf<SVGElement>} */ (drawn.querySelectorAll("[data-bit]")))
        mark.classList.toggle("on", (values[Number(mark.dataset.bit)] ^ Number(mark.dataset.inverted ?? 0)) === 1);
}

const xOf = (/** @type {Part} */ part) => MARGIN.left + part.depth * COLUMN;
const yOf = (/** @type {Part} */ part) => Math.round(10 * (MARGIN.top + (part.y + 0.5) * ROW)) / 10;

/** @param {Circuit} circuit */
function partsOf({ rows, outputs, channels, visible, origin = [...outputs.keys()] }) {
    /** @type {Map<number, Wire>} */
    const wires = new Map(Array.from({ length: 9 * channels }, (_, bit) => [bit, { bit, inverted: false }]));
    /** @type {Map<number, Part>} */
    const gates = new Map();
    const wire = (/** @type {number} */ bit) => /** @type {Wire} */ (wires.get(bit));
    const add = (/** @type {number} */ bit, /** @type {string} */ name, /** @type {Wire[]} */ reads) => {
        const depth = 1 + Math.max(0, ...reads.map((read) => gates.get(read.bit)?.depth ?? 0));
        gates.set(bit, { bit, name, reads, depth, y: 0, kind: "gate" });
        wires.set(bit, { bit, inverted: false });
    };
    for (const [bit, gate, a, b] of rows.map(plain)) {
        if (gate === 0 || gate === 15) add(bit, String(gate & 1), []);
        else if (gate === 3 || gate === 12) wires.set(bit, { bit: wire(a).bit, inverted: wire(a).inverted !== (gate === 12) });
        else {
            const reads = [wire(a), wire(b)],
                [name, inverted] = SYMBOLS[onInverted(gate, reads[0].inverted, reads[1].inverted)];
            add(
                bit,
                name,
                reads.map((read, i) => ({ bit: read.bit, inverted: inverted[i] === 1 })),
            );
        }
    }
    const last = 1 + Math.max(0, ...[...gates.values()].map(({ depth }) => depth));
    /** @type {Part[]} */
    const ends = outputs.map((output, c) => ({
        bit: wire(output).bit,
        name: `channel ${origin[c]}`,
        note: c < visible ? "visible" : "memory",
        reads: [wire(output)],
        depth: last,
        y: 0,
        kind: "output",
    }));
    const read = new Set([...gates.values(), ...ends].flatMap(({ reads }) => reads.map(({ bit }) => bit)));
    /** @type {Part[]} */
    const inputs = [...read]
        .filter((bit) => bit < 9 * channels)
        .sort((a, b) => a - b)
        .map((bit) => ({ bit, name: `channel ${origin[Math.floor(bit / 9)]} ${PLACES[bit % 9]}`, reads: [], depth: 0, y: 0, kind: "input" }));
    return [...inputs, ...[...gates.values()].filter(({ bit }) => read.has(bit)), ...ends];
}

// The gate that gives the same on inverted inputs as `gate` on plain ones: its truth table with rows exchanged.
/** @param {number} gate @param {boolean} a @param {boolean} b */
function onInverted(gate, a, b) {
    if (a) gate = ((gate & 3) << 2) | (gate >> 2);
    if (b) gate = ((gate & 5) << 1) | ((gate & 10) >> 1);
    return gate;
}

// Layered layout (Sugiyama): columns are sorted by the mean place of their neighbours, in sweeps to the right and left.
/** @param {Part[]} parts */
function placed(parts) {
    /** @type {Part[][]} */
    const columns = Array.from({ length: Math.max(...parts.map(({ depth }) => depth)) + 1 }, () => []);
    for (const part of parts) columns[part.depth].push(part);
    const source = new Map(parts.filter(({ kind }) => kind !== "output").map((part) => [part.bit, part]));
    /** @type {Map<Part, Part[]>} */
    const left = new Map(parts.map((part) => [part, part.reads.map(({ bit }) => /** @type {Part} */ (source.get(bit)))])),
        right = new Map(parts.map((part) => [part, /** @type {Part[]} */ ([])]));
    for (const [part, sources] of left) for (const source of sources) right.get(source)?.push(part);
    const tallest = Math.max(...columns.map((column) => column.length));
    const stack = (/** @type {Part[]} */ column) => {
        for (const [i, part] of column.entries()) part.y = ((i + 0.5) * tallest) / column.length - 0.5;
    };
    columns.forEach(stack);
    for (let sweep = 0; sweep < SWEEPS; sweep++) {
        const neighbours = sweep % 2 ? right : left;
        for (const column of sweep % 2 ? [...columns].reverse() : columns) {
            const wanted = new Map(column.map((part) => [part, mean(neighbours.get(part) ?? [], part)]));
            column.sort((one, other) => /** @type {number} */ (wanted.get(one)) - /** @type {number} */ (wanted.get(other)));
            stack(column);
        }
    }
    return parts;
}

/** @param {Part[]} neighbours @param {Part} part */
const mean = (neighbours, part) => (neighbours.length ? neighbours.reduce((sum, { y }) => sum + y, 0) / neighbours.length : part.y);

/** @param {Part} part @param {Map<number, Part>} starts */
function wires(part, starts) {
    const [x, middle] = [xOf(part) - (part.kind === "gate" ? BOX.width / 2 : 0), yOf(part)];
    const ends = part.reads
        .map((read) => ({ ...read, from: /** @type {Part} */ (starts.get(read.bit)) }))
        .sort((one, other) => one.from.y - other.from.y);
    return ends.map(({ bit, inverted, from }, i) => {
        const start = xOf(from) + (from.kind === "gate" ? BOX.width / 2 : 5),
            y = middle + (ends.length === 2 ? 6 * i - 3 : 0),
            end = x - (inverted ? 5 : 0),
            bend = (start + end) / 2;
        const path = `<path class="wire" data-bit="${bit}" d="M${start} ${yOf(from)}C${bend} ${yOf(from)} ${bend} ${y} ${end} ${y}"/>`;
        return inverted ? `${path}<circle class="not" cx="${x - 2.5}" cy="${y}" r="2.5"/>` : path;
    });
}

/** @param {Part} part */
function mark(part) {
    const [x, y] = [xOf(part), yOf(part)];
    if (part.kind === "gate")
        return `<g class="gate ${part.reads.length ? part.name.toLowerCase() : "constant"}" data-bit="${part.bit}"><rect x="${x - BOX.width / 2}" y="${y - BOX.height / 2}" width="${BOX.width}" height="${BOX.height}" rx="4"/><text class="symbol" x="${x}" y="${y + 3}">${part.name}</text></g>`;
    const inverted = part.kind === "output" ? ` data-inverted="${Number(part.reads[0].inverted)}"` : "";
    const [at, side] = part.kind === "input" ? [x - 10, " end"] : [x + 14, ""];
    const note = part.note ? ` <tspan class="note">${part.note}</tspan>` : "";
    return `<g class="${part.kind}" data-bit="${part.bit}"${inverted}><rect class="read" x="${part.kind === "input" ? x - 5 : x}" y="${y - 5}" width="10" height="10"/><text class="label${side}" x="${at}" y="${y + 4}">${part.name}${note}</text></g>`;
}
