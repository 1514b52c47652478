// A hard circuit on a grid as a world of the figure, which runs, damages cells, and returns the inputs of a cell.

import { paintState } from "../serve/web/growth.js";

/** @typedef {{ height: number, width: number, steps: number, initial?: Uint8Array }} Place  `initial`: the state `[row][column][channel]`, by default that of the task */

/** @param {HardCircuit} hard @param {Place} place @param {(step: number) => void} shown called with each step */
export function hardWorld(hard, { height, width, steps: until, initial }, shown = () => {}) {
    const { channels } = hard.layout,
        { task, model } = hard.preset.config,
        visible = task.loss_channels,
        patches = patchCells(height, width, model.periodic);
    /** @type {Uint8Array} `[row][column][channel]` */
    let grid = new Uint8Array();
    const clear = (/** @type {number} */ y, /** @type {number} */ x, /** @type {number} */ side) => {
        const isNear = (/** @type {number} */ place, /** @type {number} */ middle) =>
            place >= middle - (side >> 1) && place < middle - (side >> 1) + side;
        grid = grid.map((bit, i) => (isNear(Math.floor(i / channels / width), y) && isNear(Math.floor(i / channels) % width, x) ? 0 : bit));
    };
    const world = {
        height,
        width,
        steps: 0,
        until,
        again() {
            grid = initial ?? initialState(task, channels, height, width);
            Object.assign(world, { steps: 0, until });
        },
        advance(/** @type {number} */ count) {
            grid = hard.rollout(grid, height, width, count, false).at(-1) ?? grid;
            world.steps += count;
        },
        paint(/** @type {HTMLCanvasElement} */ canvas) {
            const seen = grid.filter((_, i) => i % channels < visible);
            paintState(canvas, { height, width, visible }, seen);
            shown(world.steps);
        },
        touch: (/** @type {number} */ y, /** @type {number} */ x) => clear(y, x, 3),
        damage: () => clear(height >> 1, width >> 1, Math.max(2, Math.round(0.3 * height))),
        inputs: (/** @type {number} */ y, /** @type {number} */ x) => Array.from(patchOf(grid, patches, y * width + x, channels)),
    };
    world.again();
    return world;
}
