// A player of recorded rollouts: a canvas, a button, a slider over the steps, and the number of wrong cells.

import { h, mayMove, setText } from "./dom.js";
import { plural } from "./format.js";
import { paint } from "./pixels.js";

const FRAME = 110; // milliseconds of a step
const HOLD = 1400; // milliseconds of the last step

export class Rollout {
    // `hex`: whether the cells are hexagons.
    constructor(hex) {
        this.canvas = h("canvas", { class: "grid", role: "img", "aria-label": "The automaton, not trained yet" });
        this.button = h("button", { type: "button", "aria-pressed": "false", onclick: () => (this.playing ? this.stop() : this.play()) }, "Play");
        this.slider = h("input", { type: "range", min: 0, max: 0, value: 0, "aria-label": "Step of the rollout", oninput: () => this.moved() });
        this.where = h("output", { class: "number" });
        this.transport = h("div", { class: "transport" }, this.button, this.slider, this.where);
        Object.assign(this, { grids: [], steps: [], at: 0, playing: false, timer: 0, target: null, hex });
    }

    // Shows grids as `pixels.paint` takes them, one for each of `steps`; while it plays, it continues at its step.
    show(grids, steps, target) {
        const first = !this.grids.length;
        Object.assign(this, { grids, steps, target });
        this.slider.max = grids.length - 1;
        this.transport.hidden = grids.length < 2;
        this.at = this.playing && !first ? Math.min(this.at, grids.length - 1) : grids.length - 1;
        this.draw();
        if (first && grids.length > 1 && mayMove()) this.play();
    }

    play() {
        this.mark(true);
        if (this.at === this.grids.length - 1) this.at = 0;
        this.tick();
    }

    stop() {
        this.mark(false);
        clearTimeout(this.timer);
    }

    mark(playing) {
        this.playing = playing;
        this.button.setAttribute("aria-pressed", String(playing));
        setText(this.button, playing ? "Pause" : "Play");
        this.button.setAttribute("aria-label", playing ? "Pause the rollout" : "Play the rollout");
    }

    moved() {
        this.stop();
        this.at = Number(this.slider.value);
        this.draw();
    }

    tick() {
        if (!this.playing || !this.canvas.isConnected) return;
        this.draw();
        const duration = this.at === this.grids.length - 1 ? HOLD : FRAME;
        this.timer = setTimeout(() => {
            this.at = (this.at + 1) % this.grids.length;
            this.tick();
        }, duration);
    }

    draw() {
        const grid = this.grids[this.at],
            step = this.steps[this.at];
        paint(this.canvas, grid, this.hex);
        this.slider.value = this.at;
        this.slider.setAttribute("aria-valuetext", `step ${step}`);
        setText(this.where, `step ${step}`);
        this.canvas.setAttribute("aria-label", `The automaton after ${plural(step, "step")}: ${described(grid, this.target)}`);
    }

    // Describes the last step.
    result() {
        return described(this.grids.at(-1), this.target);
    }
}

function described(grid, target) {
    const cells = grid.height * grid.width;
    if (!target || target.bits.length !== grid.bits.length || target.width !== grid.width) {
        const on = grid.bits.subarray(0, cells).reduce((sum, bit) => sum + bit, 0);
        return `${on} of ${plural(cells, "cell")} on in channel 0.`;
    }
    const wrong = new Set();
    grid.bits.forEach((bit, i) => bit !== target.bits[i] && wrong.add(i % cells));
    return wrong.size
        ? `${wrong.size} of ${plural(cells, "cell")} differ from the target.`
        : "every cell matches the target.";
}
