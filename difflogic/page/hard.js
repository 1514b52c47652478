"use strict";
// The hard circuit, of the most probable gates, which the page shows and exports, as in difflogic/model/cell_netlist.py.

/** The circuit that engines.js runs. @type {any} */
let circuit;
/** Computes the new state of 32 cells, for engines.js. @type {(patch: Int32Array, result: Int32Array) => void} */
let cell;

/**
 * Returns the target `[row][column][channel]` of a task on a grid of this size.
 * @param {any} task @param {number} height @param {number} width
 */
function targetOf(task, height, width) {
    if (task.target === "picture") {
        const bitsOf = (/** @type {string} */ cell) => Array.from({ length: task.loss_channels }, (_, c) => (Number(cell) >> c) & 1);
        return Uint8Array.from([...task.picture.join("").replaceAll(".", "0")].flatMap(bitsOf));
    }
    const bits = new Uint8Array(height * width * task.loss_channels);
    for (let y = 0; y < height; y++) {
        for (let x = 0; x < width; x++) bits[(y * width + x) * task.loss_channels] = ((y >> 1) + (x >> 1)) % 2;
    }
    return bits;
}

/** Returns an initial state `[row][column][channel]` as in training, centred or random. @param {any} task @param {number} channels */
function initialState(task, channels, height = task.height, width = task.width) {
    const state = new Uint8Array(height * width * channels),
        middle = ((height >> 1) * width + (width >> 1)) * channels;
    if (task.start === "random" || task.start === "boards") return state.map(() => Number(Math.random() < 0.5));
    return task.start === "seed" ? state.fill(1, middle, middle + channels) : state;
}

/** Returns the nine cells of each cell's neighbourhood, -1 outside the grid. @param {number} height @param {number} width @param {boolean} periodic */
function patchCells(height, width, periodic) {
    return Int32Array.from({ length: PATCH * height * width }, (_, i) => {
        const cell = Math.floor(i / PATCH),
            y = Math.floor(cell / width) + Math.floor((i % PATCH) / 3) - 1,
            x = (cell % width) + (i % 3) - 1;
        if (!periodic && (y < 0 || x < 0 || y >= height || x >= width)) return -1;
        return ((y + height) % height) * width + ((x + width) % width);
    });
}

/** Returns the bits around a cell, nine for each channel. @param {Uint8Array} state @param {Int32Array} patches @param {number} cell @param {number} channels */
function patchOf(state, patches, cell, channels) {
    return Uint8Array.from({ length: PATCH * channels }, (_, bit) => {
        const from = patches[PATCH * cell + (bit % PATCH)];
        return from < 0 ? 0 : state[from * channels + Math.floor(bit / PATCH)];
    });
}

/** Returns the coefficients of 1, a, b and ab of a gate's polynomial over 0 and 1. @param {number} gate */
function polynomial(gate) {
    const [f00, f01, f10, f11] = [3, 2, 1, 0].map((place) => (gate >> place) & 1);
    return [f00, f00 ^ f10, f00 ^ f01, f00 ^ f01 ^ f10 ^ f11];
}

/**
 * Compiles gates for `run`: `places` has bit, a and b of each, `masks` its polynomial, of which each coefficient has 32 lanes.
 * @param {number[][]} rows @param {(bit: number) => { to: number, lane: number }[]} changes gates that replace a bit's in a lane
 */
function compiled(rows, changes = () => []) {
    const places = new Int32Array(3 * rows.length),
        masks = new Int32Array(4 * rows.length);
    for (const [n, [bit, gate, a, b]] of rows.entries()) {
        const own = polynomial(gate).map((on) => -on);
        for (const { to, lane } of changes(bit)) {
            const mask = 1 << lane;
            for (const [place, on] of polynomial(to).entries()) own[place] = on ? own[place] | mask : own[place] & ~mask;
        }
        places.set([bit, a, b], 3 * n);
        masks.set(own, 4 * n);
    }
    return { places, masks };
}

/** Evaluates compiled gates on 32 lanes. @param {Int32Array} values of all nodes @param {ReturnType<typeof compiled>} gates */
function run(values, { places, masks }) {
    for (let n = 0, m = 0; n < places.length; n += 3, m += 4) {
        const a = values[places[n + 1]],
            b = values[places[n + 2]];
        values[places[n]] = masks[m] ^ (masks[m + 1] & a) ^ (masks[m + 2] & b) ^ (masks[m + 3] & a & b);
    }
}

/**
 * Returns the part of a circuit that computes some channels: `rows` of bit, gate, a, b, the `outputs`, and the `inputs`
 * that are read. A pass-through gate is replaced by its input, unless it is in `retained`.
 * @param {ReturnType<typeof flatLayout>} layout @param {Uint8Array} ids @param {Map<number, any>} retained
 * @param {number[]} channels
 */
function reduced(layout, ids, retained, channels) {
    const { patchNodes, wires, gates } = layout,
        count = gates.length,
        last = patchNodes + count - layout.channels;
    const source = Int32Array.from({ length: patchNodes + count }, (_, node) => node),
        needed = new Uint8Array(source.length);
    for (let i = 0; i < count; i++) {
        const gate = ids[gates[i]];
        if ((gate === 3 || gate === 5) && !retained.has(gates[i])) {
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
            readsBoth = retained.has(gates[i]);
        if (readsBoth || (gate !== 0 && gate !== 15 && gate !== 10)) needed[a] = 1;
        if (readsBoth || (gate !== 0 && gate !== 15 && gate !== 12)) needed[b] = 1;
        rows.push([patchNodes + i, gate, a, b]);
    }
    const inputs = Array.from({ length: patchNodes }, (_, bit) => bit).filter((bit) => needed[bit]);
    return { outputs, inputs, rows: rows.reverse() };
}

class HardCircuit {
    /**
     * @param {any} preset @param {ReturnType<typeof flatLayout>} layout @param {ArrayLike<number>} ids of the gates
     * @param {number} seed @param {string[]} image rows of text @param {string[]} names of the sixteen gates
     */
    constructor(preset, layout, ids, seed, image, names) {
        this.preset = preset;
        this.layout = layout;
        this.seed = seed;
        this.image = image;
        this.names = names;
        this.ids = Uint8Array.from(ids);
        const channels = Array.from({ length: layout.channels }, (_, c) => c);
        /** `outputs`: the bit of each channel; `rows`: bit, gate, a, b of each gate that an output needs, in order. */
        ({ outputs: this.outputs, rows: this.rows } = reduced(layout, this.ids, new Map(), channels));
        /** Gates of a repair, as rows. @type {number[][]} */
        this.added = [];
        this.compile();
    }

    /** Returns a circuit that was trained before, in the form of plans.py. @param {any} recorded */
    static recorded({ channels, periodic, rows, outputs, task }) {
        const hard = Object.create(HardCircuit.prototype);
        Object.assign(hard, {
            preset: { config: { task, model: { periodic } } },
            layout: { channels, patchNodes: PATCH * channels, gates: rows },
        });
        Object.assign(hard, { rows, outputs, added: [] }).compile();
        return hard;
    }

    /** Appends the gates of a repair, and sets the outputs. @param {NonNullable<ReturnType<typeof repairs>>} repair */
    extend({ rows, outputs }) {
        this.rows = [...this.rows, ...rows];
        this.added = rows;
        this.outputs = outputs;
        this.compile();
        return this;
    }

    compile() {
        this.compiled = compiled(this.rows);
        /** Values of all nodes, 32 cells in a word. */
        this.values = new Int32Array(this.layout.patchNodes + this.layout.gates.length + this.added.length);
    }

    /** @param {Int32Array} patch @param {Int32Array} result */
    evaluate(patch, result) {
        const values = /** @type {Int32Array} */ (this.values);
        values.set(patch);
        run(values, /** @type {ReturnType<typeof compiled>} */ (this.compiled));
        for (let c = 0; c < this.outputs.length; c++) result[c] = values[this.outputs[c]];
    }

    /** Returns the states `[row][column][channel]` of a rollout, the initial one included. @param {Uint8Array} start */
    rollout(start, /** @type {number} */ height, /** @type {number} */ width, /** @type {number} */ steps, all = true) {
        circuit = { channels: this.layout.channels, periodic: this.preset.config.model.periodic };
        cell = (patch, result) => this.evaluate(patch, result);
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

    /** Returns the bit planes of engines.js. @param {Uint8Array} grid @param {number} height @param {number} width */
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

    /** Returns the number of mismatches with the target after a number of steps. @param {Uint8Array} start @param {Uint8Array} target */
    wrong(start, target, /** @type {number} */ height, /** @type {number} */ width, /** @type {number} */ steps) {
        const { channels } = this.layout,
            seen = this.preset.config.task.loss_channels;
        const last = this.rollout(start, height, width, steps, false)[1];
        return target.reduce((sum, bit, i) => sum + (bit ^ last[Math.floor(i / seen) * channels + (i % seen)]), 0);
    }

    /** Returns the text of circuit.json, with one gate in each line. */
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
        // A channel without a repair is its last gate, which may be a pass-through.
        const ends = this.outputs.map((bit, c) => `"${name(bit < first ? first - channels + c : bit)}"`);
        return `${this.preset.head},\n"gates": [\n${rows.join(",\n")}\n],\n"outputs": [${ends.join(", ")}]}\n`;
    }

    /** Returns the text of config.toml, with the seed and the image of this run. */
    config() {
        const text = this.preset.toml.replace(/^seed = \d+$/m, `seed = ${this.seed}`);
        const rows = this.image.map((row) => `    "${row}",\n`).join("");
        return this.preset.own ? text.replace(/^picture = \[[^\]]*\]/m, `picture = [\n${rows}]`) : text;
    }
}
