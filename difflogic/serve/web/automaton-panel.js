// The automaton as it learns: the newest hard rollout as a film, the target beside it, every channel as a tile.

import { card, h, setText } from "./dom.js";
import { Film } from "./film.js";
import { count } from "./format.js";
import { empty } from "./notices.js";
import { isHex, paint, targetOf, unpacked } from "./pixels.js";

export function automatonPanel() {
    const film = new Film(),
        tiles = new Map();
    const words = h("p", { class: "quiet" });
    const target = h("canvas", { class: "grid", role: "img", "aria-label": "The target" });
    const aim = h("figure", { class: "aim", hidden: true }, target, h("figcaption", {}, "Target"));
    const channels = h("ul", { class: "tiles" });
    const stage = h("div", { class: "stage" }, film.canvas, aim);
    const shown = h("div", { hidden: true }, film.transport, words, h("h3", {}, "Channels"), channels);
    const nothing = empty(
        "Nothing to see yet",
        "The automaton appears here soon after training begins.",
    );
    const element = card("automaton", "The automaton", stage, nothing, shown);
    film.canvas.hidden = true;
    let wanted = null,
        hex = false;

    function aimAt(config) {
        wanted = targetOf(config.task);
        film.hex = hex = isHex(config);
        aim.hidden = !wanted;
        if (wanted) paint(target, wanted, hex);
    }

    function show(frame) {
        const { height, width, visible } = frame,
            area = height * width;
        const bits = unpacked(frame.film.bits, frame.film.steps.length * visible * area);
        const grids = frame.film.steps.map((_, i) => ({
            height,
            width,
            channels: visible,
            bits: bits.subarray(i * visible * area, (i + 1) * visible * area),
        }));
        nothing.hidden = true;
        shown.hidden = film.canvas.hidden = false;
        film.show(grids, frame.film.steps, wanted);
        setText(words, `The hard circuit at epoch ${count(frame.epoch)}, run from a fresh start: ${film.result()}`);
        drawTiles(frame.tiles, height, width);
    }

    function drawTiles({ step, channels: which, bits: packed }, height, width) {
        const area = height * width,
            bits = unpacked(packed, which.length * area);
        for (const channel of tiles.keys()) if (!which.includes(channel)) drop(channel);
        which.forEach((channel, i) => {
            const canvas = tiles.get(channel) ?? tile(channel);
            const own = bits.subarray(i * area, (i + 1) * area);
            paint(canvas, { height, width, channels: 1, bits: own }, hex);
            canvas.setAttribute(
                "aria-label",
                `Channel ${channel} after ${step} steps: ${own.reduce((sum, bit) => sum + bit, 0)} of ${area} cells on`,
            );
        });
    }

    function tile(channel) {
        const canvas = h("canvas", { class: "grid", role: "img" });
        tiles.set(channel, canvas);
        channels.append(h("li", {}, canvas, h("span", {}, channel)));
        return canvas;
    }

    function drop(channel) {
        tiles.get(channel).closest("li").remove();
        tiles.delete(channel);
    }

    return { element, aimAt, show };
}
