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
    height = 0;
    width = 0;
    /** @type {GPUBuffer[]} */
    states = [];
    /** The other buffers of a grid of this size. @type {any} */
    fire;
    /** @type {any} */
    staging;
    /** @type {any} */
    size;
    /** @type {GPUBindGroup[]} */
    groups = [];

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
        this.resize(state, height, width);
        const queue = this.device.queue, words = wordsOf(width);
        queue.writeBuffer(this.states[0], 0, state);
        fires.forEach((fire, index) => {
            queue.writeBuffer(this.fire, 0, fire);
            const encoder = this.device.createCommandEncoder(), pass = encoder.beginComputePass();
            pass.setPipeline(this.pipeline);
            pass.setBindGroup(0, this.groups[index % 2]);
            pass.dispatchWorkgroups(Math.ceil(words / 8), Math.ceil(height / 8));
            pass.end();
            queue.submit([encoder.finish()]);
        });
        const encoder = this.device.createCommandEncoder();
        encoder.copyBufferToBuffer(this.states[fires.length % 2], 0, this.staging, 0, state.byteLength);
        queue.submit([encoder.finish()]);
        await this.staging.mapAsync(GPUMapMode.READ);
        const after = new Uint32Array(this.staging.getMappedRange()).slice();
        this.staging.unmap();
        return after;
    }

    resize(state, height, width) {
        if (this.height === height && this.width === width) return;
        [...this.states, this.fire, this.staging, this.size].forEach((buffer) => buffer?.destroy());
        const both = GPUBufferUsage.STORAGE | GPUBufferUsage.COPY_DST | GPUBufferUsage.COPY_SRC;
        const buffer = (size, usage) => this.device.createBuffer({ size, usage });
        this.states = [buffer(state.byteLength, both), buffer(state.byteLength, both)];
        this.fire = buffer(4 * height * wordsOf(width), both);
        this.staging = buffer(state.byteLength, GPUBufferUsage.MAP_READ | GPUBufferUsage.COPY_DST);
        this.size = buffer(8, GPUBufferUsage.UNIFORM | GPUBufferUsage.COPY_DST);
        this.device.queue.writeBuffer(this.size, 0, new Uint32Array([height, width]));
        this.groups = [0, 1].map((from) =>
            this.device.createBindGroup({
                layout: this.pipeline.getBindGroupLayout(0),
                entries: [this.size, this.states[from], this.states[1 - from], this.fire].map((buffer, binding) => ({
                    binding,
                    resource: { buffer },
                })),
            }),
        );
        this.height = height;
        this.width = width;
    }
}
