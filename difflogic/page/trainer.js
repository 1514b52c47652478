"use strict";
// Trains a preset until it is solved, as `difflogic train PRESET --recipe robust --until-solved` does: attempts with
// new wiring, on a smaller grid first, stopped early if they stall (difflogic/train: stages, restarts, success). Only the
// proof for every initial state of a board is missing.

const STOPPED = Symbol("stopped"),
    AGAIN = Symbol("another seed");

class Trainer {
    /**
     * @param {PageDevice} device @param {any} plans of `readPlans` @param {string} name of a preset
     * @param {{seed?: number, picture?: string[], onEvent?: (event: any) => void}} options
     */
    constructor(device, plans, name, { seed, picture = [], onEvent = () => {} } = {}) {
        let preset = plans.presets[name];
        if (preset.own) {
            // A drawing in white alone has identical channels: one of them is learned.
            if (!picture.some((row) => /[1-6]/.test(row))) {
                preset = preset.white;
                picture = picture.map((row) => row.replaceAll("7", "1"));
            }
            preset = { ...preset, config: { ...preset.config, task: { ...preset.config.task, picture } } };
        }
        this.preset = preset;
        this.device = device;
        this.plans = plans;
        this.picture = picture;
        this.onEvent = onEvent;
        this.models = preset.stages.map((/** @type {any} */ stage) => new StageModel(device, stage, plans.kernels, plans.constants));
        /** @type {Promise<any>} one piece of work on the device at a time */
        this.busy = Promise.resolve();
        /** @type {(() => void) | null} */
        this.wake = null;
        this.wanted = { stop: false, seed: /** @type {number | null} */ (null) };
        this.state = {
            attempt: 1,
            seed: seed ?? preset.config.seed,
            epoch: 0,
            epochs: preset.config.train.epochs,
            stage: 0,
            paused: false,
            solved: false,
        };
        this.base = this.state.seed;
        this.perSecond = 0;
        this.probes = new Uint8Array(); // evaluation grids
        /** The hard circuit, once it is searched. @type {Uint8Array | null} */
        this.gates = null;
        /** @type {LocalSearch | null} */
        this.search = null;
        /** The result of the search, with the gates of its repair. @type {HardCircuit | null} */
        this.repaired = null;
        /** @type {Promise<boolean> | undefined} */
        this.training = undefined;
        /** @type {Promise<void> | undefined} */
        this.opened = undefined;
        /** @type {number[]} */
        this.losses = [];
        /** @type {Evaluation[]} */
        this.evaluations = [];
    }

    /** @template T @param {() => Promise<T>} work @returns {Promise<T>} */
    locked(work) {
        const result = this.busy.then(work);
        this.busy = result.catch(() => null);
        return result;
    }

    get model() {
        return this.models[this.state.stage];
    }

    pause() {
        if (this.state.paused) return;
        this.state.paused = true;
        this.onEvent({ kind: "paused" });
    }

    resume() {
        if (!this.state.paused) return;
        this.state.paused = false;
        this.onEvent({ kind: "resumed" });
        this.wake?.();
    }

    stop() {
        this.wanted.stop = true;
        this.wake?.();
    }

    restart(/** @type {number} */ seed) {
        this.wanted.seed = seed >>> 0;
        this.wake?.();
    }

    /** Waits while training is paused or the tab is in the background. */
    async turn() {
        for (let wasHidden = false; ; ) {
            if (this.wanted.stop) throw STOPPED;
            if (this.wanted.seed !== null) throw AGAIN;
            const hidden = document.visibilityState === "hidden";
            if (hidden !== wasHidden) this.onEvent({ kind: hidden ? "hidden" : "visible" });
            wasHidden = hidden;
            if (!hidden && !this.state.paused) return;
            await new Promise((resolve) => {
                this.wake = () => resolve(null);
                document.addEventListener("visibilitychange", this.wake, { once: true });
            });
        }
    }

    /** Makes attempts until one is solved (true) or `stop` is called (false). Throws RefusedError. */
    train() {
        this.wanted.stop = false;
        this.training = this.solve();
        return this.training;
    }

    async solve() {
        this.opened ??= this.locked(() => this.open());
        await this.opened;
        for (let attempt = 1, why = ""; ; attempt++) {
            try {
                why = await this.attempt(attempt, why);
                if (!why) return true;
            } catch (error) {
                if (error === STOPPED) return false;
                if (error !== AGAIN) throw error;
                this.base = this.wanted.seed ?? this.base;
                this.wanted.seed = null;
                this.onEvent({ kind: "restarted", seed: this.base });
                attempt = 0;
                why = "";
            }
        }
    }

    async open() {
        const total = this.models.reduce((/** @type {number} */ sum, /** @type {StageModel} */ model) => sum + model.plan.pipelines.length, 0);
        let done = 0;
        const report = () => this.onEvent({ kind: "compiling", done: done++, total });
        report();
        for (const model of this.models) await model.open(report);
    }

    /** Runs an attempt. Returns the reason why it stopped, or "" if it is solved. @param {number} number @param {string} why */
    async attempt(number, why) {
        const { constants } = this.plans,
            { train } = this.preset.config;
        const seed = number === 1 ? this.base : foldIn(keyFromSeed(this.base), constants.RESTART_STREAM + number - 2)[1];
        Object.assign(this.state, { attempt: number, seed, epoch: 0, stage: 0, solved: false });
        this.losses = [];
        this.evaluations = [];
        this.onEvent({ kind: "attempt", number, seed, why });
        await this.locked(async () => this.begin(seed));
        for (;;) {
            const { epoch } = this.state,
                interval = train.eval_interval;
            await this.toEpoch(epoch ? Math.min(train.epochs, (Math.floor(epoch / interval) + 1) * interval) : 1);
            if (await this.isSolved()) return this.solved();
            const over = this.state.epoch >= train.epochs ? "it reached its last epoch" : "";
            const stalled = whyStalled(this.preset, this.losses, this.evaluations, constants) || over;
            const isDue = this.gates && (stalled || isMilestone(this.preset, this.evaluations));
            if (isDue && (await this.isRepaired(/** @type {LocalSearch} */ (this.search)))) return this.solved();
            if (stalled) return stalled;
        }
    }

    solved() {
        const { epoch, attempt, seed } = this.state;
        this.state.solved = true;
        this.onEvent({ kind: "solved", epoch, attempt, seed });
        return "";
    }

    /** Uploads the data that depend on the seed and on the visitor's image. */
    begin(/** @type {number} */ seed) {
        const { preset, plans } = this,
            { model, task } = preset.config,
            drawn = initialCircuit(preset.config, seed, plans.constants);
        this.layout = flatLayout(model, drawn);
        this.gates = null;
        this.repaired = null;
        this.search = preset.config.search.begin ? new LocalSearch(preset, this.layout, seed, plans.constants) : null;
        if (preset.random) this.probes = drawProbes(preset.config, seed, plans.constants);
        for (const [stage, stageModel] of this.models.entries()) {
            const tables = kernelTables(this.layout, stageModel.plan),
                { height, width } = preset.stages[stage];
            stageModel.fill("wires", tables.wires);
            stageModel.fill("edges", tables.edges);
            if (preset.random) {
                const own = drawProbes({ ...preset.config, task: { ...task, height, width } }, seed, plans.constants);
                const words = packGrids(own, height * width * model.channels);
                stageModel.fill("words", toChunks(words, model.channels, new Uint32Array(stageModel.size("words") / 4)));
            }
            if (!preset.own) continue;
            const target = targetOf(task, task.height, task.width);
            stageModel.fill("targets", toChunks(target, task.loss_channels, new Float32Array(stageModel.size("targets") / 4)));
            stageModel.fill("hard_targets", Uint32Array.from(Array.from(target).flatMap((bit) => [bit, 1])));
        }
        const key = keyFromSeed(seed),
            next = split(key)[0],
            first = this.model;
        first.fill("logits", drawn.logits);
        for (const name of ["mu", "nu"]) first.fill(name, new Uint8Array(first.size(name)));
        first.fill("control", Uint32Array.from([...(task.start === "boards" ? next : key), ...next, 0, 0, 0, 0]));
        this.enter();
    }

    /** Computes the stage's coefficients from its logits. */
    enter() {
        const { height, width, steps, until } = this.preset.stages[this.state.stage];
        this.device.queue.submit([this.model.encode(this.model.plan.init).finish()]);
        this.onEvent({ kind: "stage", stage: this.state.stage, height, width, steps, until });
    }

    async toEpoch(/** @type {number} */ stop) {
        while (this.state.epoch < stop) {
            await this.turn();
            const stage = this.preset.stages[this.state.stage];
            if (this.state.epoch === stage.until && this.state.stage + 1 < this.models.length) {
                const before = this.model;
                this.state.stage++;
                await this.locked(async () => {
                    this.model.continue(before);
                    this.enter();
                });
                continue;
            }
            if (this.search && this.state.epoch >= this.preset.config.search.begin) {
                await this.searchOnce(this.search);
                continue;
            }
            const began = performance.now(),
                most = Math.min(stop, stage.until) - this.state.epoch;
            const losses = await this.locked(() => this.model.train(this.state.epoch, most));
            const now = (1000 * losses.length) / (performance.now() - began);
            this.perSecond = this.losses.length ? 0.8 * this.perSecond + 0.2 * now : now;
            this.advanced(losses, stage.height * stage.width * this.model.plan.batch);
        }
    }

    /** Stores and reports the losses of epochs. @param {ArrayLike<number>} losses @param {number} cells that a loss is the sum of, 0 if there is none */
    advanced(losses, cells) {
        this.losses.push(...Array.from(losses));
        this.state.epoch += losses.length;
        this.onEvent({ kind: "epochs", epoch: this.state.epoch, losses, perSecond: this.perSecond, cells });
    }

    /** Runs an epoch of the search, which begins with the current hard circuit. @param {LocalSearch} search */
    async searchOnce(search) {
        const began = performance.now();
        if (!this.gates) {
            this.gates = Uint8Array.from(new Uint32Array(await this.locked(() => this.model.download("gate_ids"))));
            this.onEvent({ kind: "search", epoch: this.state.epoch });
        }
        await search.search(this.gates, this.state.epoch + 1);
        this.perSecond = 1000 / (performance.now() - began);
        this.advanced([Number.NaN], 0);
    }

    /** Evaluates on the grids of the task, independent of the stage, and tests a circuit that is right on all. */
    async isSolved() {
        const { task } = this.preset.config,
            isLast = this.state.stage === this.models.length - 1,
            size = task.height * task.width;
        const target = targetOf(task, task.height, task.width);
        const count = this.models.at(-1).plan.probes;
        let wrong = 0;
        if (this.gates) wrong = this.search?.wrong(this.gates, [])[0].reduce((sum, bit) => sum + bit, 0) ?? 0;
        else if (isLast) wrong = await this.locked(() => this.model.evaluate());
        else {
            const hard = await this.circuit(),
                values = size * this.preset.config.model.channels;
            for (let first = 0; first < this.probes.length; first += values) {
                wrong += hard.wrong(this.probes.subarray(first, first + values), target, task.height, task.width, task.steps);
            }
        }
        this.evaluations.push({ epoch: this.state.epoch, wrong });
        this.onEvent({ kind: "evaluation", epoch: this.state.epoch, wrong, values: count * size * task.loss_channels });
        if (wrong) return false;
        return !this.preset.random || isRightAfresh(await this.circuit(), this.plans.constants);
    }

    /** Repairs the result of the search, if possible. @param {LocalSearch} search */
    async isRepaired(search) {
        const hard = await this.circuit(),
            repair = repairs(hard, search, this.plans.constants);
        if (!repair) return false;
        this.repaired = hard.extend(repair);
        this.onEvent({ kind: "repaired", gates: repair.rows.length });
        this.onEvent({ kind: "evaluation", epoch: this.state.epoch, wrong: 0, values: search.target.length });
        return true;
    }

    /** Returns the current hard circuit. */
    async circuit() {
        if (this.repaired) return this.repaired;
        const ids = this.gates ?? new Uint32Array(await this.locked(() => this.model.download("gate_ids")));
        return new HardCircuit(this.preset, /** @type {any} */ (this.layout), ids, this.state.seed, this.picture, this.plans.gate_names);
    }

    /** Returns the share of converged gates: one of their sixteen probabilities is large. */
    async converged() {
        const logits = new Float32Array(await this.locked(() => this.model.download("logits")));
        let converged = 0;
        for (let first = 0; first < logits.length; first += 16) {
            const row = logits.subarray(first, first + 16),
                most = Math.max(...row);
            if (1 / row.reduce((sum, logit) => sum + Math.exp(logit - most), 0) >= this.plans.constants.DECIDED) converged++;
        }
        return converged / (logits.length / 16);
    }

    /** Returns the soft rollout of the last batch's first sample, its initial state, and the current hard circuit. */
    async look() {
        const { channels } = this.preset.config.model,
            visible = this.preset.config.task.loss_channels,
            { stage, epoch } = this.state;
        const { height, width, steps } = this.preset.stages[stage],
            { plan } = this.model,
            cells = height * width;
        const values = new Float32Array(await this.locked(() => this.model.download("states")));
        const at = (/** @type {number} */ slot, /** @type {number} */ i, /** @type {number} */ c) =>
            values[((slot * plan.chunks + (i >> 4)) * channels + c) * CHUNK + (i & 15)];
        const state = (/** @type {number} */ slot, /** @type {number} */ seen) =>
            Float32Array.from({ length: cells * seen }, (_, n) => at(slot, Math.floor(n / seen), n % seen));
        return {
            epoch,
            height,
            width,
            steps,
            visible,
            circuit: await this.circuit(),
            start: Uint8Array.from(state(plan.states[0], channels)),
            soft: plan.states.map((/** @type {number} */ slot) => state(slot, visible)),
        };
    }

    /** Frees the device's memory, once training has stopped. */
    async close() {
        this.stop();
        await this.training?.catch(() => null);
        await this.locked(async () => this.models.map((/** @type {StageModel} */ model) => model.close()));
    }
}
