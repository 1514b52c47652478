"use strict";
// The local search on the hard circuit that ends the training of an image, bit for bit as in difflogic/engine/search.py:
// its integers are sampled from seed and epoch. Circuits that differ in one gate are tested together, in the bits of words.

const LANES = 64,
    ROUNDS = 16,
    DRAWN = 4,
    WHERE = 0,
    HOW_FAR = 1,
    FUNCTION = 2,
    SIDES = 3;

class LocalSearch {
    /** @param {any} preset @param {ReturnType<typeof flatLayout>} layout @param {number} seed @param {any} constants */
    constructor(preset, layout, seed, constants) {
        const { config } = preset,
            { task } = config;
        this.layout = layout;
        this.config = config;
        this.constants = constants;
        this.key = foldIn(keyFromSeed(seed), constants.SEARCH_STREAM);
        this.target = targetOf(task, task.height, task.width);
        /** Cost of each mismatch, `[channel][cell]`. */
        this.costs = new Uint32Array(this.target.length).fill(1);
        this.start = initialState(task, layout.channels);
        this.patches = patchCells(task.height, task.width, config.model.periodic);
    }

    /** Runs an epoch, which changes `gates`. It pauses between rounds, so that the page stays responsive. @param {Uint8Array} gates */
    async search(gates, /** @type {number} */ epoch) {
        const words = randomBits(foldIn(this.key, epoch), ROUNDS * LANES * DRAWN);
        let wrong = this.wrong(gates, [])[0];
        const count = () => wrong.reduce((sum, bit) => sum + bit, 0),
            before = count();
        for (let round = 0; round < ROUNDS; round++) {
            if (!wrong.includes(1)) return;
            await new Promise((resolve) => setTimeout(resolve));
            const drawn = words.subarray(round * LANES * DRAWN, (round + 1) * LANES * DRAWN);
            const changes = this.candidates(gates, drawn),
                mismatches = this.wrong(gates, changes).slice(1);
            const scores = mismatches.map((wrongOf) => this.cost(wrongOf)),
                best = Math.min(...scores);
            if (best > this.cost(wrong)) continue;
            const ties = Array.from(scores.keys()).filter((i) => scores[i] === best);
            const chosen = ties[drawn[WHERE] % ties.length];
            gates[changes[chosen].gate] = changes[chosen].to;
            wrong = mismatches[chosen];
        }
        // Costs stay constant while the number of mismatches falls.
        const { STEADY, FEW } = this.constants;
        if (count() > FEW && STEADY * (before - count()) >= count()) return;
        for (let i = 0; i < wrong.length; i++) this.costs[i] += wrong[i];
    }

    /** @param {Uint8Array} wrong */
    cost(wrong) {
        return wrong.reduce((sum, bit, i) => sum + bit * this.costs[i], 0);
    }

    /** Returns gate and new function of each lane but the first. @param {Uint8Array} gates @param {Uint32Array} drawn */
    candidates(gates, drawn) {
        const { layout, config } = this,
            read = this.live(gates),
            instances = layout.gates.length;
        const depth = config.model.update.connections.length;
        return Array.from({ length: LANES - 1 }, (_, candidate) => {
            const word = (/** @type {number} */ place) => drawn[(candidate + 1) * DRAWN + place];
            let gate = read[word(WHERE) % read.length];
            if (candidate % 2) {
                let instance = instances - layout.channels + (word(WHERE) % config.task.loss_channels);
                for (let step = 0; step < word(HOW_FAR) % depth; step++) {
                    instance = layout.wires[2 * instance + ((word(SIDES) >>> (step % 32)) & 1)] - layout.patchNodes;
                }
                gate = layout.gates[instance];
            }
            return { gate, to: (gates[gate] + 1 + (word(FUNCTION) % 15)) % 16 };
        });
    }

    /** Returns the gates that a visible value depends on in any step, ascending. @param {Uint8Array} gates */
    live(gates) {
        const { layout, config } = this,
            { patchNodes, wires, channels } = layout,
            instances = layout.gates.length;
        const nodes = new Uint8Array(patchNodes + instances),
            seen = new Set();
        let outputs = Array.from({ length: channels }, (_, c) => c < config.task.loss_channels);
        for (let step = 0; step < config.task.steps; step++) {
            for (const [c, isNeeded] of outputs.entries()) if (isNeeded) nodes[patchNodes + instances - channels + c] = 1;
            for (let i = instances - 1; i >= 0; i--) {
                if (!nodes[patchNodes + i]) continue;
                const [, a, b, both] = polynomial(gates[layout.gates[i]]);
                if (a | both) nodes[wires[2 * i]] = 1;
                if (b | both) nodes[wires[2 * i + 1]] = 1;
            }
            outputs = outputs.map((_, c) => nodes.subarray(PATCH * c, PATCH * (c + 1)).includes(1));
        }
        for (let i = 0; i < instances; i++) if (nodes[patchNodes + i]) seen.add(layout.gates[i]);
        return [...seen].sort((a, b) => a - b);
    }

    /**
     * Returns the mismatches `[channel][cell]` of the current circuit, then of each with one change.
     * @param {Uint8Array} gates @param {{gate: number, to: number}[]} changes
     */
    wrong(gates, changes) {
        /** @type {Uint8Array[]} */
        const mismatches = [];
        for (let first = 0; first <= changes.length; first += 32) {
            // Bit 0 of the first word is the current circuit, and the changes follow in all lanes.
            const own = changes.slice(Math.max(0, first - 1), first + 31);
            const lanes = own.map((change, i) => ({ ...change, lane: i + (first ? 0 : 1) }));
            const states = this.rollout(gates, lanes),
                { length } = this.target,
                { loss_channels } = this.config.task;
            for (let lane = 0; lane < Math.min(32, changes.length + 1 - first); lane++) {
                const wrong = new Uint8Array(length),
                    cells = length / loss_channels;
                for (let i = 0; i < length; i++) {
                    const c = Math.floor(i / cells),
                        value = states[(i % cells) * this.layout.channels + c];
                    wrong[i] = ((value >>> lane) & 1) ^ this.target[(i % cells) * loss_channels + c];
                }
                mismatches.push(wrong);
            }
        }
        return mismatches;
    }

    /**
     * Returns the last state `[cell][channel]`, a word of 32 circuits each.
     * @param {Uint8Array} gates @param {{gate: number, to: number, lane: number}[]} lanes
     */
    rollout(gates, lanes) {
        const { layout, config, patches } = this,
            { channels, patchNodes } = layout,
            changed = new Map();
        for (const { gate, to, lane } of lanes) changed.set(gate, [...(changed.get(gate) ?? []), { to, lane }]);
        /** @type {number[]} */
        let needed = Array.from({ length: config.task.loss_channels }, (_, c) => c),
            known = 0;
        let part = reduced(layout, gates, changed, needed);
        // Adds the channels that others are computed from, until there are no more.
        while (known < needed.length) {
            known = needed.length;
            const read = new Set(needed);
            for (const bit of part.inputs) read.add(Math.floor(bit / PATCH));
            needed = [...read].sort((a, b) => a - b);
            part = reduced(layout, gates, changed, needed);
        }
        const program = compiled(part.rows, (bit) => changed.get(layout.gates[bit - patchNodes]) ?? []);
        const values = new Int32Array(patchNodes + layout.gates.length),
            inputs = Int32Array.from(part.inputs);
        let state = Int32Array.from(this.start, (bit) => -bit),
            next = new Int32Array(state.length);
        for (let step = 0; step < config.task.steps; step++) {
            for (let cell = 0; 9 * cell < patches.length; cell++) {
                for (let i = 0; i < inputs.length; i++) {
                    const bit = inputs[i],
                        from = patches[9 * cell + (bit % PATCH)];
                    values[bit] = from < 0 ? 0 : state[from * channels + Math.floor(bit / PATCH)];
                }
                run(values, program);
                for (let i = 0; i < needed.length; i++) next[cell * channels + needed[i]] = values[part.outputs[i]];
            }
            [state, next] = [next, state];
        }
        return state;
    }
}
