"use strict";
// The initial state of a run, computed from its seed bit for bit as in Python: random numbers (difflogic/core/prng.py),
// wires (core/wiring.py), logits (model/circuit.py), and the tables of the kernels (model/layout.py, gpu/wiring.py).

/** @typedef {[number, number]} Key two words of 32 bits */

const ROTATIONS = [
    [13, 15, 26, 6],
    [17, 29, 16, 24],
];
const PASS_THROUGH = 3,
    OR = 7,
    CHUNK = 16,
    PATCH = 9,
    CENTRE = 4,
    TREE_LEVELS = 3; // levels of gates of perception kernels that are computed as trees

/** Threefry2x32 with twenty rounds. @param {Key} key @param {number} x0 @param {number} x1 @returns {Key} */
function threefry(key, x0, x1) {
    const parts = [key[0], key[1], key[0] ^ key[1] ^ 0x1bd11bda];
    x0 = (x0 + parts[0]) | 0;
    x1 = (x1 + parts[1]) | 0;
    for (let group = 0; group < 5; group++) {
        for (const distance of ROTATIONS[group % 2]) {
            x0 = (x0 + x1) | 0;
            x1 = x0 ^ ((x1 << distance) | (x1 >>> (32 - distance)));
        }
        x0 = (x0 + parts[(group + 1) % 3]) | 0;
        x1 = (x1 + parts[(group + 2) % 3] + group + 1) | 0;
    }
    return [x0 >>> 0, x1 >>> 0];
}

/** Encrypts the first half of the counters together with the second. @param {Key} key @param {number} count */
function randomBits(key, count) {
    const half = (count + 1) >> 1,
        words = new Uint32Array(2 * half);
    for (let i = 0; i < half; i++) {
        const [x0, x1] = threefry(key, i, half + i < count ? half + i : 0);
        words[i] = x0;
        words[half + i] = x1;
    }
    return words.subarray(0, count);
}

/** @param {number} seed @returns {Key} */
const keyFromSeed = (seed) => [0, seed >>> 0];

/** @param {Key} key @returns {Key[]} */
function split(key, count = 2) {
    const words = randomBits(key, 2 * count);
    return Array.from({ length: count }, (_, i) => [words[2 * i], words[2 * i + 1]]);
}

/** @param {Key} key @param {number} data */
const foldIn = (key, data) => threefry(key, 0, data);

/** Returns fair bits. @param {Key} key @param {number} count */
const coinFlips = (key, count) => Uint8Array.from(randomBits(split(key)[1], count), (word) => word & 1);

/** Returns normal numbers in float32. @param {Key} key @param {number} count */
function normal(key, count) {
    // Logarithm and cosine have 64 bits: if a browser's differ in the last one, rounding to 32 bits hides it, except for
    // about one number in a hundred million.
    const uniform = randomBits(key, 2 * count);
    return Float32Array.from({ length: count }, (_, i) => {
        const radius = (uniform[i] >>> 9) / 8388608,
            turn = (uniform[count + i] >>> 9) / 8388608;
        return Math.sqrt(-2 * Math.log1p(-radius)) * Math.cos(2 * Math.PI * turn);
    });
}

/** Returns a permutation by rounds of stable sorting by random words. @param {Key} key @param {number} count @returns {number[]} */
function permutation(key, count) {
    let order = Array.from({ length: count }, (_, i) => i);
    const rounds = Math.ceil((3 * Math.log(Math.max(1, count))) / Math.log(2 ** 32 - 1));
    for (let round = 0; round < rounds; round++) {
        const [next, sub] = split(key),
            words = randomBits(sub, count);
        key = next;
        const sorted = Array.from(words.keys()).sort((i, j) => words[i] - words[j] || i - j);
        order = sorted.map((i) => order[i]);
    }
    return order;
}

/** Returns the first pairs `(i, i + offset)`. @param {number} inputs @param {number} count @returns {number[][]} */
function uniquePairs(inputs, count) {
    const pairs = [];
    for (let i = 0; i < inputs - 1; i += 2) pairs.push([i, i + 1]);
    if (pairs.length < count) for (let i = 1; i < inputs - 1; i += 2) pairs.push([i, i + 1]);
    for (let offset = 2; pairs.length < count; offset++) {
        for (let i = 0; i < inputs - offset; i++) pairs.push([i, i + offset]);
    }
    return pairs.slice(0, count);
}

/** Returns the wires `[a, b]` of a layer. @param {string} scheme @param {Key} key @param {number} inputs @param {number} count */
function makeWires(scheme, key, inputs, count) {
    if (scheme === "first_kernel") {
        const neighbours = [0, 1, 2, 3, 5, 6, 7, 8];
        return [permutation(key, count).map((i) => neighbours[i]), Array(count).fill(CENTRE)];
    }
    const pairs = uniquePairs(inputs, count),
        order = permutation(key, count);
    return [0, 1].map((side) => order.map((i) => pairs[i][side]));
}

/** @param {{widths: number[], connections: string[]}} network @param {Key} key */
function sampleNetwork(network, key) {
    return network.connections.map((scheme, layer) => {
        const [next, sub] = split(key);
        key = next;
        return makeWires(scheme, sub, network.widths[layer], network.widths[layer + 1]);
    });
}

/**
 * Returns the initial circuit of a seed: `perceive[kernel][layer]` and `update[layer]` are wires `[a[], b[]]`, `logits`
 * those of all gates, perception layer by layer first.
 * @param {any} config @param {number} seed @param {any} constants
 */
function initialCircuit(config, seed, constants) {
    const { model, initial } = config,
        { widths } = model.perceive,
        outputs = model.update.widths.slice(1);
    const [first, updateKey] = split(split(keyFromSeed(seed))[1]);
    const perceiveKey = split(first)[1];
    const update = sampleNetwork(model.update, updateKey);
    const perceive = split(perceiveKey, model.kernels).map((key) => sampleNetwork(model.perceive, key));
    /** @type {{id: number, logit: number}[]} */
    const starts = [];
    for (const width of widths.slice(1)) {
        for (let gate = 0; gate < model.kernels * width; gate++) starts.push({ id: PASS_THROUGH, logit: initial.logit });
    }
    if (model.all_round) {
        const lastLayer = starts.length - model.kernels * widths.at(-1);
        beginAllRound(perceive, foldIn(perceiveKey, constants.ALL_ROUND_STREAM), constants).forEach((kernel) => {
            starts[lastLayer + kernel * widths.at(-1)].id = OR;
        });
        leadStraight(update, model.channels, model.update.widths[0] / model.channels - 1, constants);
    }
    for (const width of outputs) {
        const logit = initial.logit - (width < outputs[0] ? initial.narrow_drop : 0);
        for (let gate = 0; gate < width; gate++) starts.push({ id: PASS_THROUGH, logit });
    }
    const logits = new Float32Array(16 * starts.length);
    for (const [gate, { id, logit }] of starts.entries()) {
        logits[16 * gate + id] = logit;
        if (!model.input_wise) continue;
        // In input-wise form, each row in which another gate's output differs lowers that gate's logit by the same amount.
        for (let other = 0; other < 16; other++) {
            const rows = [8, 4, 2, 1].filter((row) => (id ^ other) & row).length;
            logits[16 * gate + other] = logit * (2 - rows);
        }
    }
    if (initial.noise) {
        const noise = normal(foldIn(keyFromSeed(seed), constants.NOISE_STREAM), logits.length);
        for (let i = 0; i < logits.length; i++) logits[i] += Math.fround(Math.fround(initial.noise) * noise[i]);
    }
    return { perceive, update, logits };
}

/** Swaps wires as `begin_all_round`, and returns the kernels that begin with an OR. @returns {number[]} */
function beginAllRound(/** @type {number[][][][]} */ perceive, /** @type {Key} */ key, /** @type {any} */ constants) {
    const [turn, mirror] = randomBits(key, 2),
        ring = constants.RING,
        beginnings = constants.BEGINNINGS.moore;
    beginnings.forEach((/** @type {number[]} */ places, /** @type {number} */ kernel) => {
        const layers = perceive[kernel],
            neighbours = layers[0][0];
        places.forEach((place, input) => {
            const here = passedOn(layers.slice(0, -1), layers[layers.length - 1][input][0]);
            const wanted = ring[(2 * (turn % ring.length) + (mirror & 1 ? -place : place) + ring.length) % ring.length];
            const there = neighbours.indexOf(wanted);
            [neighbours[here], neighbours[there]] = [neighbours[there], neighbours[here]];
        });
    });
    return beginnings.flatMap((/** @type {number[]} */ places, /** @type {number} */ kernel) => (places.length > 1 ? [kernel] : []));
}

/** Follows a bit back through pass-through layers, as `_passed_on`. @param {number[][][]} layers @param {number} bit */
function passedOn(layers, bit) {
    return layers.slice(1).reduceRight((at, layer) => layer[0][at], bit);
}

/** Swaps wires as `lead_straight`. @param {number[][][]} update @param {number} channels @param {number} bits */
function leadStraight(update, channels, bits, /** @type {any} */ { STRAIGHT, ALL_ROUND_KERNELS }) {
    const [a, b] = update[0],
        assigned = new Set();
    for (let channel = 0; 2 * channel < channels - 1; channel++) {
        const place = channel % STRAIGHT,
            cycle = (channel - place) / STRAIGHT,
            source = (STRAIGHT * cycle + ((place + 1) % STRAIGHT)) % channels,
            wanted = channels + source * bits + (cycle % ALL_ROUND_KERNELS);
        const here = passedOn(update, channel);
        let there = a.findIndex((_, gate) => (a[gate] === wanted || b[gate] === wanted) && !assigned.has(gate));
        if (there < 0) there = here;
        for (const wires of [a, b]) [wires[here], wires[there]] = [wires[there], wires[here]];
        if (b[here] === wanted) [a[here], b[here]] = [b[here], a[here]];
        assigned.add(here);
    }
}

/**
 * Returns levels of gate instances over the nodes of a cell: `wires` has two nodes for each, `gates` the index of its logits.
 * @param {any} model @param {{perceive: number[][][][], update: number[][][]}} circuit
 */
function flatLayout(model, circuit) {
    const { channels, kernels } = model,
        patchNodes = PATCH * channels,
        wires = [],
        gates = [],
        levels = [];
    let gate = 0;
    // nodes[kernel][channel][j]: the node that input j of a kernel reads for a channel
    const patch = Array.from({ length: channels }, (_, c) => Array.from({ length: PATCH }, (_, f) => PATCH * c + f));
    let nodes = Array.from({ length: kernels }, () => patch);
    for (let layer = 0; layer < model.perceive.connections.length; layer++) {
        const count = model.perceive.widths[layer + 1],
            first = gates.length;
        const own = Array.from({ length: kernels }, () => Array.from({ length: channels }, () => Array(count).fill(0)));
        for (let k = 0; k < kernels; k++) {
            const [a, b] = circuit.perceive[k][layer];
            for (let j = 0; j < count; j++, gate++) {
                for (let c = 0; c < channels; c++) {
                    own[k][c][j] = patchNodes + gates.length;
                    wires.push(nodes[k][c][a[j]], nodes[k][c][b[j]]);
                    gates.push(gate);
                }
            }
        }
        levels.push({ first, count: gates.length - first });
        nodes = own;
    }
    let inputs = patch.map((places) => places[CENTRE]);
    for (let c = 0; c < channels; c++) {
        for (let s = 0; s < nodes[0][c].length; s++) for (let k = 0; k < kernels; k++) inputs.push(nodes[k][c][s]);
    }
    for (const [a, b] of circuit.update) {
        const first = gates.length;
        a.forEach((place, j) => {
            wires.push(inputs[place], inputs[b[j]]);
            gates.push(gate++);
        });
        levels.push({ first, count: gates.length - first });
        inputs = a.map((_, j) => patchNodes + first + j);
    }
    return { channels, patchNodes, levels, wires: Uint32Array.from(wires), gates: Uint32Array.from(gates) };
}

/** Returns the slots of edges that read these nodes, and the first and last of each node: see `slot_places`. */
function slotPlaces(/** @type {number[]} */ read, /** @type {number} */ patchNodes, /** @type {number[]} */ firsts) {
    const nodes = firsts[firsts.length - 1],
        ends = new Int32Array(nodes),
        shift = new Int32Array(nodes);
    for (const node of read) ends[node]++;
    const starts = ends.slice();
    for (let node = 0, sum = 0; node < nodes; node++) {
        starts[node] = sum;
        sum += ends[node];
        ends[node] = sum;
    }
    const spans = firsts.slice(0, -1).map((first, i) => [starts[first], ends[firsts[i + 1] - 1]]);
    const widest = Math.max(...spans.map(([start, end]) => end - start));
    for (const [i, [start]] of spans.entries()) {
        shift.fill(ends[patchNodes - 1] + (i % 2) * widest - start, firsts[i], firsts[i + 1]);
    }
    const next = starts.slice();
    const slots = read.map((node) => next[node]++ + shift[node]);
    return { slots, fanout: (/** @type {number} */ node) => [starts[node] + shift[node], ends[node] + shift[node]] };
}

/**
 * Returns the buffers `wires` and `edges`: see `Wiring.edges`. Throws RefusedError if the plan has other slots.
 * @param {ReturnType<typeof flatLayout>} layout @param {{split: boolean, slots: number, every_slot: number}} plan
 */
function kernelTables(layout, plan) {
    const { patchNodes, levels, gates } = layout,
        instances = gates.length,
        [leaves, inner, trees] = [1, 2, 3].map((level) => levels[level].first);
    // In a tree above its leaves a wire is the index of the gate; nodes after the patch move down by those without a node.
    const wires = layout.wires.map((node, i) => {
        if (i >= 2 * leaves && i < 2 * trees) return gates[node - patchNodes];
        return node >= patchNodes ? node - inner : node;
    });
    const sends = new Uint8Array(2 * instances).fill(1);
    sends.fill(0, 2 * leaves, 2 * trees);
    for (let i = 0; i < leaves; i++) sends[2 * i + 1] = 0;
    for (let root = inner; root < trees; root++) {
        let leaf = root;
        for (let level = 1; level < TREE_LEVELS; level++) leaf = layout.wires[2 * leaf] - patchNodes;
        sends[2 * leaf + 1] = 1;
    }
    const sent = Array.from(sends.keys()).filter((i) => sends[i]);
    const firsts = levels.slice(TREE_LEVELS - 1).map((level) => patchNodes + level.first - inner);
    const places = slotPlaces(
        sent.map((i) => wires[i]),
        patchNodes,
        [...firsts, patchNodes + instances - inner],
    );
    const slots = new Uint32Array(2 * instances);
    for (const [n, i] of sent.entries()) slots[i] = places.slots[n];
    // Levels after the trees in the order of the node that input a reads, which is then mostly loaded once.
    const order = levels.flatMap((level, number) => {
        const own = Array.from({ length: level.count }, (_, i) => level.first + i);
        return number < TREE_LEVELS ? own : own.sort((i, j) => wires[2 * i] - wires[2 * j] || i - j);
    });
    const edges = new Uint32Array(8 * (instances + patchNodes)),
        outputs = levels[levels.length - 1].count;
    const lastSlot = (/** @type {number} */ nodes) => Math.max(...Array.from({ length: nodes }, (_, node) => places.fanout(node)[1]));
    if (lastSlot(patchNodes + instances - inner) !== plan.every_slot || (plan.split && lastSlot(patchNodes) !== plan.slots))
        throw new RefusedError("data", "The wiring of this seed has no place in the plan.");
    order.forEach((i, row) => {
        const end = plan.slots - instances + i + 1;
        let fanout = i >= inner ? places.fanout(patchNodes + i - inner) : [0, 0];
        if (i >= instances - outputs && !plan.split) fanout = [end - 1, end];
        edges.set([wires[2 * i], wires[2 * i + 1], slots[2 * i], slots[2 * i + 1], ...fanout, gates[i], i], 8 * row);
    });
    for (let node = 0; node < patchNodes; node++) edges.set(places.fanout(node), 8 * (instances + node) + 4);
    return { wires: plan.split ? nearWires(wires, layout) : wires, edges };
}

/**
 * Returns wires as places in workgroup memory: the patch, and behind it two levels, which alternate.
 * @param {ArrayLike<number>} wires by node @param {ReturnType<typeof flatLayout>} layout
 */
function nearWires(wires, { patchNodes, levels }) {
    const roots = TREE_LEVELS - 1,
        even = levels.filter((_, number) => number >= roots && number % 2 === 0),
        odd = Math.max(0, ...even.map((level) => level.count)),
        near = Uint32Array.from(wires);
    for (let number = roots + 1; number < levels.length; number++) {
        const { first, count } = levels[number],
            before = levels[number - 1].first - levels[roots].first;
        for (let i = 2 * first; i < 2 * (first + count); i++) if (near[i] >= patchNodes) near[i] += ((number - 1) % 2) * odd - before;
    }
    return near;
}

/**
 * Reorders `[cells][channels]` to `[chunks][channels][16]`.
 * @param {ArrayLike<number>} values @param {number} channels @param {any} into
 */
function toChunks(values, channels, into) {
    for (let i = 0; i < values.length; i++) {
        const cell = Math.floor(i / channels),
            chunk = Math.floor(cell / CHUNK);
        into[(chunk * channels + (i % channels)) * CHUNK + (cell % CHUNK)] = values[i];
    }
    return into;
}

/** Samples evaluation grids `[grid][row][column][channel]`. @param {any} config @param {number} seed @param {any} constants */
function drawProbes(config, seed, constants) {
    const { height, width } = config.task,
        count = config.train.probes * height * width * config.model.channels;
    return coinFlips(foldIn(keyFromSeed(seed), constants.PROBE_STREAM), count);
}

/** Packs grids, 32 in a word, `[group][cell][channel]`. @param {Uint8Array} grids @param {number} values of a grid */
function packGrids(grids, values) {
    const count = grids.length / values,
        words = new Uint32Array(Math.ceil(count / 32) * values);
    for (let i = 0; i < grids.length; i++) {
        const grid = Math.floor(i / values);
        words[(grid >> 5) * values + (i % values)] |= grids[i] << (grid & 31);
    }
    return words;
}
