"use strict";
// Plays a recorded training on the visitor's device: buffers, pipelines, bind groups and three lists of dispatches, as
// difflogic/page/plans.py writes them. Nothing in the lists changes from epoch to epoch.

/** Reason why the page cannot train, as a sentence for the visitor; `kind` is one word for it. */
class RefusedError extends Error {
    constructor(/** @type {string} */ kind, /** @type {string} */ message) {
        super(message);
        this.kind = kind;
    }
}

/** @param {string} text in base64 @returns {Uint8Array<ArrayBuffer>} */
const fromBase64 = (text) => Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));

/** @param {unknown} error */
const messageOf = (error) => String(/** @type {Error} */ (error).message ?? error).replace(/\.$/, "");

/** Returns the presets of the file. Throws RefusedError. */
async function readPlans() {
    const packed = fromBase64(document.getElementById("plans")?.textContent?.trim() ?? "");
    try {
        const unpacked = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
        return await new Response(unpacked).json();
    } catch (error) {
        throw new RefusedError("data", `The page's own data cannot be read (${messageOf(error)}): download it again.`);
    }
}

/** Opens a device. Throws RefusedError. */
async function openDevice() {
    if (!navigator.gpu) {
        const advice = "use a current Chrome, Edge or Safari, or set dom.webgpu.enabled in about:config of Firefox";
        throw new RefusedError("no-webgpu", `This browser has no WebGPU, or has it switched off: ${advice}.`);
    }
    const adapter =
        (await navigator.gpu.requestAdapter({ powerPreference: "high-performance" })) ??
        (await navigator.gpu.requestAdapter({ forceFallbackAdapter: true }));
    if (!adapter) {
        const advice = "switch on hardware acceleration in its settings, update the card's driver, or use another browser";
        throw new RefusedError("no-adapter", `This browser has WebGPU, but found no graphics card that it may use: ${advice}.`);
    }
    try {
        return new PageDevice(adapter, await adapter.requestDevice());
    } catch (error) {
        throw new RefusedError("limits", `The graphics card grants less than WebGPU's usual limits: ${messageOf(error)}.`);
    }
}

/** @param {any} error of WebGPU */
function refusal(error) {
    if (error instanceof GPUOutOfMemoryError) {
        const advice = "close other tabs, or choose a smaller preset";
        return new RefusedError("memory", `The graphics card does not have enough free memory for this training: ${advice}.`);
    }
    return new RefusedError("validation", `This browser refuses a part of the training: ${messageOf(error).split("\n")[0]}.`);
}

/** A device and its compiled pipelines. */
class PageDevice {
    constructor(/** @type {GPUAdapter} */ adapter, /** @type {GPUDevice} */ handle) {
        const info = /** @type {any} */ (adapter.info ?? {});
        this.handle = handle;
        this.queue = handle.queue;
        this.name = info.description || [info.vendor, info.architecture].filter(Boolean).join(" ") || "unknown graphics card";
        this.software = Boolean(info.isFallbackAdapter ?? /** @type {any} */ (adapter).isFallbackAdapter);
        /** @type {Map<string, Promise<GPUComputePipeline>>} */
        this.pipelines = new Map();
        /** Resolves when the device is lost. @type {Promise<RefusedError>} */
        this.lost = new Promise((resolve) => {
            handle.lost.then(({ message, reason }) => {
                const why = message.split("\n")[0] || reason;
                resolve(new RefusedError("lost", `The graphics card was lost (${why}): reload the page to train again.`));
            });
            handle.addEventListener("uncapturederror", ({ error }) => resolve(refusal(error)));
        });
    }

    layout(/** @type {string} */ kernel, /** @type {string[]} */ access) {
        /** @type {Record<string, GPUBufferBindingType>} */
        const types = { uniform: "uniform", read: "read-only-storage", read_write: "storage" };
        const entries = access.map((kind, binding) => ({ binding, visibility: GPUShaderStage.COMPUTE, buffer: { type: types[kind] } }));
        return this.handle.createBindGroupLayout({ label: kernel, entries });
    }

    /** Returns a pipeline, which all stages share. */
    pipeline(
        /** @type {string} */ kernel,
        /** @type {Record<string, number>} */ constants,
        /** @type {{code: string, access: string[]}} */ spec,
    ) {
        const key = kernel + JSON.stringify(constants);
        let pipeline = this.pipelines.get(key);
        if (!pipeline) {
            const module = this.handle.createShaderModule({ label: kernel, code: spec.code });
            const layout = this.handle.createPipelineLayout({ bindGroupLayouts: [this.layout(kernel, spec.access)] });
            pipeline = this.handle.createComputePipelineAsync({
                label: kernel,
                layout,
                compute: { module, entryPoint: "main", constants },
            });
            pipeline.catch(() => this.pipelines.delete(key));
            this.pipelines.set(key, pipeline);
        }
        return pipeline;
    }

    write(/** @type {GPUBuffer} */ buffer, /** @type {ArrayBufferView<ArrayBuffer>} */ data) {
        this.queue.writeBuffer(buffer, 0, data.buffer, data.byteOffset, data.byteLength);
    }

    /** Returns the result of `work`. Throws RefusedError if the device lacks memory or rejects it. */
    async within(/** @type {() => any} */ work) {
        this.handle.pushErrorScope("validation");
        this.handle.pushErrorScope("out-of-memory");
        const result = work();
        const [memory, validation] = await Promise.all([this.handle.popErrorScope(), this.handle.popErrorScope()]);
        if (memory ?? validation) throw refusal(memory ?? validation);
        return result;
    }
}

/** @typedef {[number, number, number, number, number]} Dispatch pipeline, group, x, y, work */

/** The buffers of one stage, and the dispatches on them. */
class StageModel {
    /** @param {PageDevice} device @param {any} stage @param {Record<string, any>} kernels @param {any} constants */
    constructor(device, stage, kernels, constants) {
        this.device = device;
        this.plan = stage.plans[device.software ? "software" : "hardware"];
        this.kernels = kernels;
        this.constants = constants;
        this.mostWork = this.plan.most_work;
        this.epochsAtOnce = 1;
        /** @type {GPUBuffer[]} */
        this.buffers = [];
        /** @type {GPUComputePipeline[]} */
        this.pipelines = [];
    }

    /** Creates buffers, groups and pipelines; `report` is called after each pipeline. Throws RefusedError. */
    async open(/** @type {() => void} */ report) {
        const { plan, device } = this;
        this.buffers = await device.within(() => plan.buffers.map((/** @type {[string, number, string]} */ buffer) => this.buffer(...buffer)));
        plan.buffers.forEach((/** @type {any[]} */ [, , , contents], /** @type {number} */ number) => {
            if (typeof contents === "string") device.write(this.buffers[number], fromBase64(contents));
        });
        this.groups = await device.within(() =>
            plan.groups.map((/** @type {any[]} */ [kernel, bound]) =>
                device.handle.createBindGroup({
                    layout: device.layout(kernel, this.kernels[kernel].access),
                    entries: bound.map((/** @type {number[]} */ [buffer, offset, size], /** @type {number} */ binding) => ({
                        binding,
                        resource: { buffer: this.buffers[buffer], offset, size },
                    })),
                }),
            ),
        );
        for (const [kernel, constants] of plan.pipelines) {
            try {
                this.pipelines.push(await device.pipeline(kernel, constants, this.kernels[kernel]));
            } catch (error) {
                const cannot = `This browser cannot compile the kernel ${kernel}: ${messageOf(error).split("\n")[0]}.`;
                throw await Promise.race([device.lost, Promise.resolve(new RefusedError("validation", cannot))]);
            }
            report();
        }
        const room = Math.max(this.size("logits"), this.size("states") * this.named("states").length);
        this.staging = await device.within(() => this.buffer("reading", room, "staging"));
    }

    buffer(/** @type {string} */ label, /** @type {number} */ size, /** @type {string} */ kind) {
        const both = GPUBufferUsage.COPY_DST | GPUBufferUsage.COPY_SRC;
        const usage = {
            storage: GPUBufferUsage.STORAGE | both,
            uniform: GPUBufferUsage.UNIFORM | both,
            staging: GPUBufferUsage.COPY_DST | GPUBufferUsage.MAP_READ,
        }[kind];
        return this.device.handle.createBuffer({ label, size, usage: usage ?? 0 });
    }

    /** Returns the buffers of a name, in order. */
    named(/** @type {string} */ name) {
        return this.buffers.filter((_, number) => this.plan.buffers[number][0] === name);
    }

    size(/** @type {string} */ name) {
        return this.plan.buffers.find((/** @type {any[]} */ buffer) => buffer[0] === name)[1];
    }

    fill(/** @type {string} */ name, /** @type {ArrayBufferView<ArrayBuffer>} */ data) {
        this.device.write(this.named(name)[0], data);
    }

    /** Copies logits, moments, keys and counters from another stage. */
    continue(/** @type {StageModel} */ other) {
        const encoder = this.device.handle.createCommandEncoder();
        for (const name of ["logits", "mu", "nu", "control"]) {
            encoder.copyBufferToBuffer(other.named(name)[0], 0, this.named(name)[0], 0, this.size(name));
        }
        this.device.queue.submit([encoder.finish()]);
    }

    /** Encodes one pass. */
    encode(/** @type {Dispatch[]} */ list) {
        const encoder = this.device.handle.createCommandEncoder(),
            pass = encoder.beginComputePass();
        let current = -1;
        for (const [pipeline, group, x, y] of list) {
            if (pipeline !== current) pass.setPipeline(this.pipelines[pipeline]);
            current = pipeline;
            pass.setBindGroup(0, this.groups[group]);
            pass.dispatchWorkgroups(x, y);
        }
        pass.end();
        return encoder;
    }

    /** Splits dispatches into submits that are short enough for watchdogs. */
    pieces(/** @type {Dispatch[]} */ list) {
        /** @type {Dispatch[][]} */
        const pieces = [[]];
        let work = 0;
        for (const dispatch of list) {
            if (work && work + dispatch[4] > this.mostWork) {
                pieces.push([]);
                work = 0;
            }
            pieces[pieces.length - 1].push(dispatch);
            work += dispatch[4];
        }
        return pieces;
    }

    /**
     * Submits each piece, and then returns the bytes of each `[buffer, offset, size]`.
     * @param {Dispatch[][]} pieces @param {[GPUBuffer, number, number][]} wanted
     */
    async run(pieces, wanted) {
        const { device } = this,
            staging = /** @type {GPUBuffer} */ (this.staging);
        let total = 0;
        for (const [number, piece] of pieces.entries()) {
            const encoder = this.encode(piece),
                isLast = number === pieces.length - 1;
            for (const [buffer, offset, size] of isLast ? wanted : []) {
                encoder.copyBufferToBuffer(buffer, offset, staging, total, size);
                total += size;
            }
            device.queue.submit([encoder.finish()]);
            // One submit at a time: a queue of them would block the screen.
            if (!isLast) await this.orLost(device.queue.onSubmittedWorkDone());
        }
        if (!total) return new ArrayBuffer(0);
        await this.orLost(staging.mapAsync(GPUMapMode.READ, 0, total));
        const bytes = staging.getMappedRange(0, total).slice(0);
        staging.unmap();
        return bytes;
    }

    /** Waits for work on the device, which may be lost. Throws RefusedError. @param {Promise<any>} work */
    async orLost(work) {
        const failed = await Promise.race([work.then(() => null, refusal), this.device.lost]);
        // The reason why the device was lost is more useful than the failure of the work, and comes a moment later.
        const why = new Promise((resolve) => setTimeout(() => resolve(failed), 1000));
        if (failed) throw await Promise.race([this.device.lost, why]);
    }

    /** Trains at most `most` epochs after `epoch`, and returns their losses. @param {number} epoch @param {number} most */
    async train(epoch, most) {
        const { HISTORY, SUBMIT_SECONDS } = this.constants,
            list = this.plan.train_step;
        const count = Math.min(most, this.epochsAtOnce),
            pieces = count > 1 ? [Array(count).fill(list).flat()] : this.pieces(list);
        // The ring's last entries, oldest first: they may lie in two pieces.
        const start = epoch % HISTORY,
            first = Math.min(count, HISTORY - start),
            [history] = this.named("history");
        /** @type {[GPUBuffer, number, number][]} */
        const wanted = [[history, 8 * start, 8 * first]];
        if (first < count) wanted.push([history, 0, 8 * (count - first)]);
        const began = performance.now(),
            words = new Float32Array(await this.run(pieces, wanted));
        const seconds = Math.max((performance.now() - began) / 1000 / count, 1e-6);
        // Only the last measurement counts, because a busy machine slows down from one submit to the next.
        this.epochsAtOnce = Math.max(1, Math.min(HISTORY, Math.floor(SUBMIT_SECONDS / seconds)));
        const work = list.reduce((/** @type {number} */ sum, /** @type {Dispatch} */ dispatch) => sum + dispatch[4], 0);
        this.mostWork = Math.max(this.plan.most_work, Math.floor((work * SUBMIT_SECONDS) / seconds));
        return words.filter((_, i) => i % 2 === 0);
    }

    /** Returns the number of mismatches of the hard circuit on the stage's evaluation grids. */
    async evaluate() {
        const wanted = /** @type {[GPUBuffer, number, number]} */ ([this.named("counts")[0], 0, this.size("counts")]);
        const counts = new Uint32Array(await this.run(this.pieces(this.plan.evaluation), [wanted]));
        return counts
            .filter((_, i) => i % 2 === 0)
            .slice(0, this.plan.probe_groups)
            .reduce((sum, count) => sum + count, 0);
    }

    /** Returns the concatenated bytes of all buffers of a name. @param {string} name */
    async download(name) {
        return this.run(
            [[]],
            this.named(name).map((buffer) => [buffer, 0, this.size(name)]),
        );
    }

    close() {
        for (const buffer of [...this.buffers, this.staging]) buffer?.destroy();
    }
}
