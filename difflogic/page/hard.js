"use strict";
// The circuit of most probable gates, which the page shows and hands over: as difflogic/model/cell_netlist.py has it.

const ALPHABET = ".123456789";
/** The circuit that engines.js runs. @type {any} */
let circuit = { channels: 1, periodic: false };
/** @type {HardCircuit | null} */
let current = null;

/** The new state of 32 cells: what engines.js calls. @param {Int32Array} patch @param {Int32Array} result */
function cell(patch, result) {
    /** @type {HardCircuit} */ (current).evaluate(patch, result);
}

/** Bits `[row][column][channel]` of rows of text. @param {string[]} rows @param {number} channels */
function decodePicture(rows, channels) {
    return Uint8Array.from(
        rows.flatMap((row) =>
            [...row].flatMap((letter) => Array.from({ length: channels }, (_, c) => (ALPHABET.indexOf(letter) >> c) & 1)),
        ),
    );
}

/**
 * What a task of one target should show, on a grid of this size.
 * @param {any} task @param {number} height @param {number} width
 */
function targetOf(task, height, width) {
    if (task.target === "picture") return decodePicture(task.picture, task.loss_channels);
    const bits = new Uint8Array(height * width * task.loss_channels);
    for (let y = 0; y < height; y++) {
        for (let x = 0; x < width; x++) bits[(y * width + x) * task.loss_channels] = ((y >> 1) + (x >> 1)) % 2;
    }
    return bits;
}

/** @param {any} preset @param {string[]} picture */
function checkedPicture(preset, picture) {
    const { height, width } = preset.config.task,
        fits = picture.length === height && picture.every((row) => row.length === width);
    if (!fits) throw new RefusedError("picture", `A picture has ${height} rows of ${width} cells here, got ${picture.length} rows.`);
    if (!picture.every((row) => /^[.0-7]*$/.test(row)))
        throw new RefusedError("picture", "A picture is written in . and the digits 0 to 7.");
    return picture.map((row) => row.replaceAll("0", "."));
}

/** The polynomial of a gate over 0 and 1: whether it has 1, a, b and ab. @param {number} gate */
function polynomial(gate) {
    const [f00, f01, f10, f11] = [3, 2, 1, 0].map((place) => (gate >> place) & 1);
    return [f00, f00 ^ f10, f00 ^ f01, f00 ^ f01 ^ f10 ^ f11];
}

/**
 * Gates of 32 lanes: of each its bit, a and b, and its polynomial as masks.
 * @param {Int32Array} values @param {Int32Array} places @param {Int32Array} masks
 */
function runRows(values, places, masks) {
    for (let n = 0, m = 0; n < places.length; n += 3, m += 4) {
        const a = values[places[n + 1]],
            b = values[places[n + 2]];
        values[places[n]] = masks[m] ^ (masks[m + 1] & a) ^ (masks[m + 2] & b) ^ (masks[m + 3] & a & b);
    }
}

/**
 * What some channels are computed from: `rows` of bit, gate, a, b, the bits `outputs` that the channels become, and the
 * `inputs` that are read. A gate that passes a bit on is that bit, but for those of `kept`.
 * @param {ReturnType<typeof flatLayout>} layout @param {Uint8Array} ids @param {Map<number, any>} kept
 * @param {number[]} channels
 */
function reduced(layout, ids, kept, channels) {
    const { patchNodes, wires, gates } = layout,
        count = gates.length,
        last = patchNodes + count - layout.channels;
    const source = Int32Array.from({ length: patchNodes + count }, (_, node) => node),
        needed = new Uint8Array(source.length);
    for (let i = 0; i < count; i++) {
        const gate = ids[gates[i]];
        if ((gate === 3 || gate === 5) && !kept.has(gates[i])) {
            source[patchNodes + i] = source[wires[2 * i + (gate === 5 ? 1 : 0)]];
        }
    }
    const outputs = channels.map((c) => source[last + c]),
        rows = [];
    for (const bit of outputs) needed[bit] = 1;
    for (let i = count - 1; i >= 0; i--) {
        if (!needed[patchNodes + i]) continue;
        const gate = ids[gates[i]],
            a = source[wires[2 * i]],
            b = source[wires[2 * i + 1]],
            all = kept.has(gates[i]);
        if (all || (gate !== 0 && gate !== 15 && gate !== 10)) needed[a] = 1;
        if (all || (gate !== 0 && gate !== 15 && gate !== 12)) needed[b] = 1;
        rows.push([patchNodes + i, gate, a, b]);
    }
    const inputs = Array.from({ length: patchNodes }, (_, bit) => bit).filter((bit) => needed[bit]);
    return { outputs, inputs, rows: rows.reverse() };
}

class HardCircuit {
    /**
     * @param {any} preset @param {ReturnType<typeof flatLayout>} layout @param {ArrayLike<number>} ids of the gates
     * @param {number} seed @param {string[]} picture @param {string[]} names of the sixteen gates
     */
    constructor(preset, layout, ids, seed, picture, names) {
        this.preset = preset;
        this.layout = layout;
        this.seed = seed;
        this.picture = picture;
        this.names = names;
        this.ids = Uint8Array.from(ids);
        const made = reduced(
            layout,
            this.ids,
            new Map(),
            Array.from({ length: layout.channels }, (_, c) => c),
        );
        /** The bit that each channel becomes. */
        this.outputs = made.outputs;
        /** Bit, gate, a, b of what is computed, in order. */
        this.rows = made.rows;
        /** Gates that were added: the same four numbers. @type {number[][]} */
        this.added = [];
        /** Gates with logits of their own that compute something which an output needs. */
        this.active = new Set(this.rows.map(([bit]) => layout.gates[bit - layout.patchNodes])).size;
        this.compile();
    }

    /** A circuit that was trained before, in the form of plans.py. @param {any} recorded */
    static recorded({ channels, periodic, rows, outputs, task }) {
        const hard = Object.create(HardCircuit.prototype);
        Object.assign(hard, {
            preset: { config: { task, model: { periodic } } },
            layout: { channels, patchNodes: PATCH * channels, gates: rows },
        });
        Object.assign(hard, { rows, outputs, added: [] }).compile();
        return hard;
    }

    /** Adds gates behind all others, and changes what the channels become. @param {NonNullable<ReturnType<typeof repairs>>} made */
    extend({ rows, outputs }) {
        this.rows = [...this.rows, ...rows];
        this.added = rows;
        this.outputs = outputs;
        this.active += rows.length;
        this.compile();
        return this;
    }

    /** A gate is `c0 ^ ca a ^ cb b ^ cab a b`, each a mask of 32 bits. */
    compile() {
        const count = this.rows.length;
        this.places = new Int32Array(3 * count);
        this.masks = new Int32Array(4 * count);
        this.rows.forEach(([bit, gate, a, b], n) => {
            this.places?.set([bit, a, b], 3 * n);
            this.masks?.set(
                polynomial(gate).map((on) => -on),
                4 * n,
            );
        });
        /** Of all nodes, 32 cells to a word. */
        this.values = new Int32Array(this.layout.patchNodes + this.layout.gates.length + this.added.length);
    }

    /** @param {Int32Array} patch @param {Int32Array} result */
    evaluate(patch, result) {
        const values = /** @type {Int32Array} */ (this.values);
        values.set(patch);
        runRows(values, /** @type {Int32Array} */ (this.places), /** @type {Int32Array} */ (this.masks));
        for (let c = 0; c < this.outputs.length; c++) result[c] = values[this.outputs[c]];
    }

    /** Lets engines.js run this circuit. */
    use() {
        current = this;
        circuit = { channels: this.layout.channels, periodic: this.preset.config.model.periodic };
    }

    /** The states `[row][column][channel]` of a rollout, the start included. @param {Uint8Array} start */
    rollout(start, /** @type {number} */ height, /** @type {number} */ width, /** @type {number} */ steps, all = true) {
        this.use();
        const engine = new ScriptEngine(),
            fire = new Uint32Array(height * wordsOf(width)).fill(0xffffffff),
            states = [start];
        let planes = this.planes(start, height, width);
        for (let step = 1; step <= steps; step++) {
            planes = engine.step(planes, height, width, fire);
            if (all || step === steps) states.push(this.grid(planes, height, width));
        }
        return states;
    }

    /** Bit planes of engines.js. @param {Uint8Array} grid @param {number} height @param {number} width */
    planes(grid, height, width) {
        const { channels } = this.layout,
            words = wordsOf(width),
            planes = new Uint32Array(height * channels * words);
        for (let i = 0; i < grid.length; i++) {
            if (!grid[i]) continue;
            const c = i % channels,
                x = Math.floor(i / channels) % width,
                y = Math.floor(i / channels / width);
            planes[(y * channels + c) * words + (x >> 5)] |= 1 << (x & 31);
        }
        return planes;
    }

    /** The inverse. @param {Uint32Array} planes @param {number} height @param {number} width */
    grid(planes, height, width) {
        const { channels } = this.layout,
            words = wordsOf(width),
            grid = new Uint8Array(height * width * channels);
        for (let i = 0; i < grid.length; i++) {
            const c = i % channels,
                x = Math.floor(i / channels) % width,
                y = Math.floor(i / channels / width);
            grid[i] = (planes[(y * channels + c) * words + (x >> 5)] >>> (x & 31)) & 1;
        }
        return grid;
    }

    /** Planes of a start as in training, in the middle of a grid; random where it is drawn. */
    start(/** @type {number} */ height, /** @type {number} */ width) {
        const { channels } = this.layout,
            { start } = this.preset.config.task,
            grid = new Uint8Array(height * width * channels);
        if (start === "seed")
            grid.fill(1, ((height >> 1) * width + (width >> 1)) * channels, ((height >> 1) * width + (width >> 1) + 1) * channels);
        if (start === "random" || start === "boards")
            return this.planes(
                grid.map(() => Number(Math.random() < 0.5)),
                height,
                width,
            );
        return this.planes(grid, height, width);
    }

    /** Wrong values of the picture after so many steps. @param {Uint8Array} start @param {Uint8Array} target */
    wrong(start, target, /** @type {number} */ height, /** @type {number} */ width, /** @type {number} */ steps) {
        const { channels } = this.layout,
            seen = this.preset.config.task.loss_channels;
        const last = this.rollout(start, height, width, steps, false)[1];
        return target.reduce((sum, bit, i) => sum + (bit ^ last[Math.floor(i / seen) * channels + (i % seen)]), 0);
    }

    /** The text of circuit.json: every gate, one a line. */
    json() {
        const { patchNodes, wires } = this.layout;
        const name = (/** @type {number} */ bit) =>
            bit < patchNodes ? `in[${Math.floor(bit / PATCH)}][${bit % PATCH}]` : `g${bit - patchNodes}`;
        const row = (/** @type {number} */ bit, /** @type {number} */ gate, /** @type {number} */ a, /** @type {number} */ b) =>
            `{"id": "${name(bit)}", "gate": ${gate}, "name": "${this.names[gate]}", "a": "${name(a)}", "b": "${name(b)}"}`;
        const { gates, channels } = this.layout,
            first = patchNodes + gates.length;
        const rows = [
            ...Array.from(gates, (gate, i) => row(patchNodes + i, this.ids[gate], wires[2 * i], wires[2 * i + 1])),
            ...this.added.map(([bit, gate, a, b]) => row(bit, gate, a, b)),
        ];
        // A channel that was not repaired is what its last gate is, which may only pass another on.
        const ends = this.outputs.map((bit, c) => `"${name(bit < first ? first - channels + c : bit)}"`);
        return `${this.preset.head},\n"gates": [\n${rows.join(",\n")}\n],\n"outputs": [${ends.join(", ")}]}\n`;
    }

    /** The text of config.toml, with the seed and the picture of this run. */
    config() {
        const text = this.preset.toml.replace(/^seed = \d+$/m, `seed = ${this.seed}`);
        const rows = this.picture.map((row) => `    "${row}",\n`).join("");
        return this.preset.own ? text.replace(/^picture = \[[^\]]*\]/m, `picture = [\n${rows}]`) : text;
    }
}
