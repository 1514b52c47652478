// Grids as they grow from one start, side by side, once for each evaluation.

import { mayMove } from "./dom.js";
import { paintRgb } from "./pixels.js";

const LASTS = 1600, // milliseconds of a film
    LEAST = 45; // and of one step

/** @typedef {{ height: number, width: number, visible: number }} Shape */
/** @typedef {Shape & { canvas: HTMLCanvasElement, states: ArrayLike<number>[] }} Film  states `[H, W, visible]` from 0 to 1 */

/** @param {HTMLCanvasElement} canvas @param {Shape} shape @param {ArrayLike<number>} state */
export function paintState(canvas, { height, width, visible }, state) {
    const level = (/** @type {number} */ place, /** @type {number} */ c) => 255 * state[place * visible + Math.min(c, visible - 1)];
    paintRgb(canvas, height, width, (/** @type {number} */ place) => [0, 1, 2].map((c) => level(place, c)));
}

// What a rule such as B3/S23 makes of a grid on a torus, the start included.
/** @param {string} rule @param {Uint8Array} start @param {number} side @param {number} count */
export function generations(rule, start, side, count) {
    const [born, stays] = rule.split("/"),
        states = [start];
    const at = (/** @type {Uint8Array} */ cells, /** @type {number} */ y, /** @type {number} */ x) =>
        cells[((y + side) % side) * side + ((x + side) % side)];
    while (states.length <= count)
        states.push(
            states[states.length - 1].map((cell, i, cells) => {
                const y = Math.floor(i / side),
                    x = i % side;
                let sum = -cell;
                for (let n = 0; n < 9; n++) sum += at(cells, y + Math.floor(n / 3) - 1, x + (n % 3) - 1);
                return Number((cell ? stays : born).includes(String(sum)));
            }),
        );
    return states;
}

export class Growth {
    constructor() {
        this.timer = 0;
        this.playing = false;
        /** @type {{ films: Film[], tell: (at: number, last: number) => void } | null} */
        this.next = null;
    }

    // Plays films together, once the last ones are over; the shorter wait at their ends.
    /** @param {Film[]} films @param {(at: number, last: number) => void} tell hears of each step */
    show(films, tell) {
        this.next = { films, tell };
        if (!this.playing) this.play();
    }

    /** Forgets what is on its way. */
    stop() {
        clearTimeout(this.timer);
        this.playing = false;
        this.next = null;
    }

    play() {
        const shown = this.next;
        this.playing = shown !== null;
        this.next = null;
        if (!shown) return;
        const last = Math.max(...shown.films.map(({ states }) => states.length)) - 1,
            pace = Math.max(LEAST, LASTS / last);
        const step = (/** @type {number} */ at) => {
            for (const film of shown.films) paintState(film.canvas, film, film.states[Math.min(at, film.states.length - 1)]);
            shown.tell(at, last);
            this.timer = setTimeout(() => (at < last ? step(at + 1) : this.play()), at < last ? pace : 4 * pace);
        };
        step(mayMove() ? 0 : last);
    }
}
