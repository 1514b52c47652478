"use strict";
// Repair of nearly correct circuits by a few more gates, as in difflogic/circuits/synthesis/repair.py: a value that is wrong
// in the last step is inverted. Products of input and gate values distinguish the cell from all others, and from itself in
// earlier steps.

const XOR = 6,
    XNOR = 9;

/** @typedef {{ bit: number, not: boolean }} Literal */

/**
 * Returns the gates to add to a circuit and its new outputs, in the form of `reduced`; null if too much is wrong, or if a
 * wrong cell and a correct one have the same neighbourhood.
 * @param {HardCircuit} hard @param {LocalSearch} search @param {any} constants
 */
function repairs(hard, search, { MOST_WRONG, TOGETHER }) {
    const { height, width, steps, loss_channels: visible } = hard.preset.config.task,
        { channels } = hard.layout,
        cells = height * width,
        states = hard.rollout(search.start, height, width, steps),
        last = states.pop() ?? search.start;
    const isWrong = (/** @type {number} */ place, /** @type {number} */ c) =>
        search.target[place * visible + c] !== last[place * channels + c];
    const wrong = search.target.filter((_, i) => isWrong(Math.floor(i / visible), i % visible)).length;
    if (wrong > MOST_WRONG * search.target.length) return null;
    const { kinds, count, values } = neighbourhoods(hard, search.patches, states),
        before = kinds.length - cells,
        first = values.length;
    /** @type {number[][]} */
    const rows = [];
    const add = (/** @type {number} */ gate, /** @type {number} */ a, /** @type {number} */ b) => {
        const bit = first + rows.length;
        rows.push([bit, gate, a, b]);
        return bit;
    };
    const outputs = [...hard.outputs];
    for (let c = 0; c < visible; c++) {
        const inverted = kinds.filter((_, i) => i >= before && isWrong(i - before, c)),
            right = kinds.filter((_, i) => i < before || !isWrong(i - before, c));
        if (right.some((kind) => inverted.includes(kind))) return null;
        for (const product of products(values, inverted, count, TOGETHER)) {
            // AND of literals: a truth table with one 1. No two products are 1 at once, so the value is inverted by each.
            const { bit, not } = product.reduce((a, b) => ({
                bit: add(8 >> (2 * Number(!a.not) + Number(!b.not)), a.bit, b.bit),
                not: false,
            }));
            outputs[c] = add(not ? XNOR : XOR, outputs[c], bit);
        }
    }
    return { rows, outputs };
}

/**
 * Returns for each cell of these states the number of its neighbourhood, the number of different neighbourhoods, and the
 * values of all nodes on them, 32 in a word. Pass-through nodes are 0.
 * @param {HardCircuit} hard @param {Int32Array} patches @param {Uint8Array[]} states
 */
function neighbourhoods(hard, patches, states) {
    const { channels, patchNodes } = hard.layout,
        /** @type {Map<string, number>} */
        numbers = new Map(),
        /** @type {Uint8Array[]} */
        different = [];
    const kinds = states.flatMap((state) =>
        Array.from({ length: patches.length / PATCH }, (_, cell) => {
            const patch = patchOf(state, patches, cell, channels),
                key = patch.join("");
            if (!numbers.has(key)) numbers.set(key, different.push(patch) - 1);
            return /** @type {number} */ (numbers.get(key));
        }),
    );
    const words = Math.ceil(different.length / 32),
        nodes = /** @type {Int32Array} */ (hard.values),
        values = Array.from(nodes, () => new Int32Array(words));
    for (let word = 0; word < words; word++) {
        const lanes = different.slice(32 * word, 32 * (word + 1));
        const patch = Int32Array.from({ length: patchNodes }, (_, bit) =>
            lanes.reduce((bits, sample, lane) => bits | (sample[bit] << lane), 0),
        );
        hard.evaluate(patch, new Int32Array(channels));
        for (const [node, value] of nodes.entries()) values[node][word] = value;
    }
    return { kinds, count: different.length, values };
}

/**
 * Yields disjoint products, as lists of literals, that together are 1 exactly on the wanted ones of `count` samples.
 * @param {Int32Array[]} values @param {number[]} wanted @param {number} count @param {number} together
 * @returns {Generator<Literal[]>}
 */
function* products(values, wanted, count, together) {
    const left = new Int32Array(values[0].length),
        others = new Int32Array(left.length);
    for (let sample = 0; sample < count; sample++) others[sample >> 5] |= 1 << (sample & 31);
    for (const sample of wanted) {
        left[sample >> 5] |= 1 << (sample & 31);
        others[sample >> 5] &= ~left[sample >> 5];
    }
    for (const sample of wanted) {
        const isOne = (/** @type {Int32Array} */ words) => (words[sample >> 5] >>> (sample & 31)) & 1;
        if (!isOne(left)) continue;
        /** @type {Literal[]} */
        const product = [],
            inside = left.slice(),
            outside = others.slice();
        for (let total = ones(outside, outside, 0); total; total = ones(outside, outside, 0)) {
            let most = 0,
                node = 0;
            for (const [candidate, words] of values.entries()) {
                const not = isOne(words) - 1,
                    errors = ones(words, outside, not);
                const worth = errors < total ? ones(words, inside, not) ** together / (errors + 0.5) : 0;
                if (worth > most) [most, node] = [worth, candidate];
            }
            const not = isOne(values[node]) - 1;
            product.push({ bit: node, not: not !== 0 });
            for (const [word, value] of values[node].entries()) {
                inside[word] &= value ^ not;
                outside[word] &= value ^ not;
            }
        }
        for (const [word, value] of inside.entries()) {
            left[word] &= ~value;
            others[word] |= value;
        }
        yield product;
    }
}

/** Counts the bits that are 1 in both; `not` is -1 to invert the first. @param {Int32Array} words @param {Int32Array} mask @param {number} not */
function ones(words, mask, not) {
    let count = 0;
    for (let i = 0; i < mask.length; i++) {
        let bits = (words[i] ^ not) & mask[i];
        for (; bits; bits &= bits - 1) count++;
    }
    return count;
}
