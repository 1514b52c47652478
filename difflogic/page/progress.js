// The progress of a training: numbers, and the curves of the loss and of wrong cells.

import { Chart } from "../serve/web/chart.js";
import { numberList } from "../serve/web/dom.js";
import { count, duration, loss, rate } from "../serve/web/format.js";
import { Window } from "../serve/web/window.js";

const write = { tick: (/** @type {number} */ value) => String(Number(value.toPrecision(3))), value: loss };

export class Progress {
    /** @param {HTMLElement} figures place of the numbers @param {HTMLElement} curves */
    constructor(figures, curves) {
        this.list = numberList("card");
        figures.append(this.list.element);
        this.span = new Window();
        const chart = (/** @type {string} */ title, /** @type {string} */ label) => new Chart(this.span, { title, label, height: 190, write });
        this.loss = chart("Soft loss", "Curve of the soft loss of a cell, by epoch.");
        this.wrong = chart("Hard loss: wrong cells", "Curve of the number of wrong cells of the hard circuit, by epoch.");
        curves.append(this.loss.element, this.wrong.element);
        this.clear();
    }

    clear() {
        /** @type {[number, number][]} */
        this.losses = [];
        /** @type {[number, number][]} */
        this.wrongs = [];
        this.perSecond = 0;
        /** @type {number | null} from 0 to 1 */
        this.converged = null;
        this.draw(0);
    }

    /** @param {{ epoch: number, losses: ArrayLike<number>, perSecond: number, cells: number }} event */
    epochs({ epoch, losses, perSecond, cells }) {
        // A search on hard gates has no loss.
        if (cells) for (let i = 0; i < losses.length; i++) this.losses.push([epoch - losses.length + i + 1, losses[i] / cells]);
        this.perSecond = perSecond;
        this.draw(epoch);
    }

    /** @param {{ epoch: number, wrong: number }} event */
    evaluation({ epoch, wrong }) {
        this.wrongs.push([epoch, wrong]);
        this.draw(epoch);
    }

    /** @param {number} epoch the last one */
    draw(epoch) {
        this.span.extend(0, Math.max(10, epoch));
        this.loss.element.hidden = !this.losses.length;
        this.wrong.element.hidden = !this.wrongs.length;
        this.loss.show([{ name: "soft", style: "soft", points: this.losses }]);
        this.wrong.show([{ name: "hard", style: "hard", points: this.wrongs, dots: true }]);
    }

    /** Returns the time that an attempt may still take. @param {{ epoch: number, epochs: number } | null} state */
    left(state) {
        return state && this.perSecond ? `${duration((state.epochs - state.epoch) / this.perSecond)} left at most in this attempt` : "";
    }

    /**
     * @param {{ attempt: number, seed: number, epoch: number, epochs: number } | null} state
     * @param {string} grid
     * @param {string} device
     */
    numbers(state, grid, device) {
        this.list.fill([
            ["Epoch", state ? `${count(state.epoch)} of ${count(state.epochs)}` : "–"],
            ["Speed", rate(this.perSecond)],
            ["Converged gates", this.converged === null ? "–" : `${Math.floor(100 * this.converged)} %`],
            ["Attempt", state ? `${state.attempt}, seed ${state.seed}` : "–"],
            ["Grid", state ? grid : "–"],
            ["Device", device],
        ]);
    }
}
