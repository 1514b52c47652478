"use strict";
// A grid is rows of bit planes, Uint32Array [height][channels][words]: bit i of word j is the cell in column 32*j + i;
// bits beyond the last column are 0. Cells that fire are [height][words]. Both engines give the same bits.

const wordsOf = (width) => Math.ceil(width / 32);
const lastWord = (width) => 0xffffffff >>> (32 * wordsOf(width) - width);

// The word of a row of one channel, and the cells to its left and right, into three[0..2].
function load(state, row, width, word, patch, place) {
    const words = wordsOf(width), first = row * words, last = words - 1, top = (width - 1) % 32;
    const middle = state[first + word];
    let left = middle << 1, right = middle >>> 1;
    if (word > 0) left |= state[first + word - 1] >>> 31;
    else if (circuit.periodic) left |= (state[first + last] >>> top) & 1;
    if (word < last) right |= state[first + word + 1] << 31;
    else if (circuit.periodic) right |= (state[first] & 1) << top;
    patch[place] = left;
    patch[place + 1] = middle;
    patch[place + 2] = right;
}

// The neighbourhoods of the 32 cells of a word, into patch[9 * channels].
function neighbourhood(state, height, width, y, word, patch) {
    for (let dy = 0; dy < 3; dy++) {
        const row = (y + dy + height - 1) % height;
        const inside = circuit.periodic || (y + dy > 0 && y + dy <= height);
        for (let c = 0; c < circuit.channels; c++) {
            const place = 9 * c + 3 * dy;
            if (inside) load(state, row * circuit.channels + c, width, word, patch, place);
            else patch[place] = patch[place + 1] = patch[place + 2] = 0;
        }
    }
}

class ScriptEngine {
    name = "js";

    constructor() {
        this.patch = new Int32Array(9 * circuit.channels);
        this.result = new Int32Array(circuit.channels);
    }

    // Returns the state after one step for each element of `fires`.
    async advance(state, height, width, fires) {
        for (const fire of fires) state = this.step(state, height, width, fire);
        return state;
    }

    step(state, height, width, fire) {
        const words = wordsOf(width), after = new Uint32Array(state.length);
        for (let y = 0; y < height; y++)
            for (let word = 0; word < words; word++) {
                neighbourhood(state, height, width, y, word, this.patch);
                cell(this.patch, this.result);
                const fired = fire[y * words + word] & (word === words - 1 ? lastWord(width) : 0xffffffff);
                for (let c = 0; c < circuit.channels; c++) {
                    const place = (y * circuit.channels + c) * words + word;
                    after[place] = (this.result[c] & fired) | (state[place] & ~fired);
                }
            }
        return after;
    }
}

class GpuEngine {
    name = "gpu";
    /** Buffers and bind groups of the newest grid. @type {any} */
    grid = null;

    constructor(/** @type {GPUDevice} */ device, /** @type {GPUComputePipeline} */ pipeline) {
        this.device = device;
        this.pipeline = pipeline;
    }

    // Throws an Error if there is no GPU, with the reason.
    static async create() {
        if (circuit.shader === null) throw new Error("the circuit is too large for a shader");
        if (!navigator.gpu) throw new Error("this browser has none");
        const adapter = await navigator.gpu.requestAdapter();
        if (!adapter) throw new Error("no adapter was found");
        const device = await adapter.requestDevice();
        const module = device.createShaderModule({ code: circuit.shader });
        const failed = (await module.getCompilationInfo()).messages.find((message) => message.type === "error");
        if (failed) throw new Error("the shader does not compile: " + failed.message);
        const compute = { module, entryPoint: "main" };
        return new GpuEngine(device, await device.createComputePipelineAsync({ layout: "auto", compute }));
    }

    async advance(state, height, width, fires) {
        const { device, pipeline } = this, { queue } = device;
        const { states, mask, staging, groups } = this.gridOf(height, width, state.byteLength);
        queue.writeBuffer(states[0], 0, state);
        fires.forEach((fire, index) => {
            queue.writeBuffer(mask, 0, fire);
            const encoder = device.createCommandEncoder(), pass = encoder.beginComputePass();
            pass.setPipeline(pipeline);
            pass.setBindGroup(0, groups[index % 2]);
            pass.dispatchWorkgroups(Math.ceil(wordsOf(width) / 8), Math.ceil(height / 8));
            pass.end();
            queue.submit([encoder.finish()]);
        });
        const encoder = device.createCommandEncoder();
        encoder.copyBufferToBuffer(states[fires.length % 2], 0, staging, 0, state.byteLength);
        queue.submit([encoder.finish()]);
        await staging.mapAsync(GPUMapMode.READ);
        const after = new Uint32Array(staging.getMappedRange()).slice();
        staging.unmap();
        return after;
    }

    // Returns the buffers and bind groups of a grid, which are created again only if its size changes.
    gridOf(height, width, bytes) {
        if (this.grid?.height === height && this.grid.width === width) return this.grid;
        this.grid?.buffers.forEach((buffer) => buffer.destroy());
        const { STORAGE, UNIFORM, MAP_READ, COPY_DST, COPY_SRC } = GPUBufferUsage, both = STORAGE | COPY_DST | COPY_SRC;
        const kinds = [[bytes, both], [bytes, both], [4 * height * wordsOf(width), both], [bytes, MAP_READ | COPY_DST], [8, UNIFORM | COPY_DST]];
        const buffers = kinds.map(([size, usage]) => this.device.createBuffer({ size, usage }));
        const [first, second, mask, staging, size] = buffers, states = [first, second];
        this.device.queue.writeBuffer(size, 0, new Uint32Array([height, width]));
        const groups = [0, 1].map((from) => {
            const entries = [size, states[from], states[1 - from], mask].map((buffer, binding) => ({ binding, resource: { buffer } }));
            return this.device.createBindGroup({ layout: this.pipeline.getBindGroupLayout(0), entries });
        });
        return (this.grid = { height, width, buffers, states, mask, staging, groups });
    }
}
