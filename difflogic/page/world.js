// A hard circuit on a grid, as the figure shows it: it runs, is damaged, and tells a cell's inputs.

import { paintRgb } from "../serve/web/pixels.js";

/** @typedef {{ height: number, width: number, steps: number, start?: Uint8Array }} Place  the start `[row][column][channel]`, by default that of the task */

export class HardWorld {
    /** @param {HardCircuit} hard @param {Place} place @param {(step: number) => void} shown is called with each step */
    constructor(hard, { height, width, steps, start }, shown = () => {}) {
        this.hard = hard;
        this.height = height;
        this.width = width;
        this.last = steps;
        this.start = start;
        this.shown = shown;
        hard.use();
        this.engine = new ScriptEngine();
        this.fire = new Uint32Array(height * wordsOf(width)).fill(0xffffffff);
        this.steps = 0;
        this.until = steps;
        this.state = new Uint32Array();
        this.again();
    }

    /** What the figure draws. */
    get circuit() {
        const { rows, outputs, layout, preset } = this.hard;
        return { rows, outputs, channels: layout.channels, visible: preset.config.task.loss_channels };
    }

    again() {
        const { hard, height, width, start } = this;
        this.state = start ? hard.planes(start, height, width) : hard.start(height, width);
        this.steps = 0;
        this.until = this.last;
    }

    /** @param {number} count */
    advance(count) {
        this.hard.use();
        for (let i = 0; i < count; i++) this.state = this.engine.step(this.state, this.height, this.width, this.fire);
        this.steps += count;
    }

    /** @param {HTMLCanvasElement} canvas */
    paint(canvas) {
        const { height, width, circuit } = this,
            grid = this.hard.grid(this.state, height, width);
        const level = (/** @type {number} */ place, /** @type {number} */ c) =>
            255 * grid[place * circuit.channels + Math.min(c, circuit.visible - 1)];
        paintRgb(canvas, height, width, (/** @type {number} */ place) => [0, 1, 2].map((c) => level(place, c)));
        this.shown(this.steps);
    }

    /** Clears a square around a cell. @param {number} y @param {number} x */
    touch(y, x) {
        this.clear(y, x, 3);
    }

    damage() {
        this.clear(this.height >> 1, this.width >> 1, Math.max(2, Math.round(0.3 * this.height)));
    }

    /** @param {number} y @param {number} x @param {number} side */
    clear(y, x, side) {
        const { height, width } = this,
            { channels } = this.circuit,
            grid = this.hard.grid(this.state, height, width);
        const first = { y: y - (side >> 1), x: x - (side >> 1) };
        for (let v = Math.max(0, first.y); v < Math.min(height, first.y + side); v++)
            for (let u = Math.max(0, first.x); u < Math.min(width, first.x + side); u++)
                grid.fill(0, (v * width + u) * channels, (v * width + u + 1) * channels);
        this.state = this.hard.planes(grid, height, width);
    }

    /** @param {number} y @param {number} x */
    inputs(y, x) {
        this.hard.use();
        const patch = new Int32Array(9 * this.circuit.channels);
        neighbourhood(this.state, this.height, this.width, y, x >> 5, patch);
        return Array.from(patch, (word) => (word >>> (x & 31)) & 1);
    }
}
