// Cellular automata in the browser: states on a canvas, and rules of Wolfram and Life as tables.

import { mayMove } from "./dom.js";
import { paintRgb } from "./pixels.js";

const PACE = 45; // milliseconds of a step

/** @typedef {{ height: number, width: number, visible: number }} Shape */

/** @param {HTMLCanvasElement} canvas @param {Shape} shape @param {ArrayLike<number>} state */
export function paintState(canvas, { height, width, visible }, state) {
    const level = (/** @type {number} */ place, /** @type {number} */ c) => 255 * state[place * visible + Math.min(c, visible - 1)];
    paintRgb(canvas, height, width, (/** @type {number} */ place) => [0, 1, 2].map((c) => level(place, c)));
}

const PATCH = { "": [0, 1, 2, 3, 5, 6, 7, 8], H: [0, 1, 3, 5, 7, 8], V: [1, 3, 5, 7] }; // the neighbours, row by row

// The 512 entries of a rule: B3/S23, B2/S34H, 110 or 128 hexadecimal digits, as difflogic/core/rules.py; null for else.
/** @param {string} rule */
export function tableOf(rule) {
    const bit = (/** @type {number} */ entry, /** @type {number} */ f) => (entry >> (8 - f)) & 1,
        entries = (/** @type {(entry: number) => number} */ of) => Uint8Array.from({ length: 512 }, (_, entry) => of(entry));
    if (/^[0-9a-f]{128}$/i.test(rule)) return entries((entry) => (parseInt(rule[entry >> 2], 16) >> (3 - (entry & 3))) & 1);
    const line = rule.match(/^w?(\d{1,3})$/i);
    if (line && Number(line[1]) < 256)
        return entries((entry) => (Number(line[1]) >> (4 * bit(entry, 3) + 2 * bit(entry, 4) + bit(entry, 5))) & 1);
    const [, born, stays, kind] = rule.toUpperCase().match(/^B([0-8]*)\/S([0-8]*)([HV]?)$/) ?? [];
    if (kind === undefined) return null;
    const sum = (/** @type {number} */ entry) => PATCH[/** @type {keyof typeof PATCH} */ (kind)].reduce((all, f) => all + bit(entry, f), 0);
    return entries((entry) => Number((bit(entry, 4) ? stays : born).includes(String(sum(entry)))));
}

// The states of a grid on a torus under a table, the initial state included.
/** @param {Uint8Array} table @param {Uint8Array} start @param {number} side @param {number} count */
export function generations(table, start, side, count) {
    const states = [start];
    const patches = [...start.keys()].map((i) =>
        Array.from({ length: 9 }, (_, f) => {
            const y = Math.floor(i / side) + Math.floor(f / 3) - 1,
                x = (i % side) + (f % 3) - 1;
            return ((y + side) % side) * side + ((x + side) % side);
        }),
    );
    while (states.length <= count) {
        const last = states[states.length - 1];
        states.push(Uint8Array.from(patches, (patch) => table[patch.reduce((entry, cell) => 2 * entry + last[cell], 0)]));
    }
    return states;
}

/**
 * Plays states over and over, or shows the last one if the system asks for less motion. Returns a function that stops it.
 * @param {HTMLCanvasElement} canvas @param {Shape} shape @param {ArrayLike<number>[]} states `[H, W, visible]` from 0 to 1
 */
export function played(canvas, shape, states) {
    let step = mayMove() ? 0 : states.length - 1;
    const show = () => paintState(canvas, shape, states[step++ % states.length]);
    show();
    const timer = mayMove() ? setInterval(show, PACE) : 0;
    return () => clearInterval(timer);
}
