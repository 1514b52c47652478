// What it is to learn, and beside it what it does now: the newest hard rollout as a film. Below every channel as a tile.

import { card, h, setText } from "./dom.js";
import { Film } from "./film.js";
import { count, plural } from "./format.js";
import { isHex, paint, targetOf, unpacked } from "./pixels.js";

export function automatonPanel(config) {
    const film = new Film(),
        tiles = new Map();
    const words = h("p", { class: "quiet" }, "It appears here soon after training begins.");
    const target = h("canvas", { class: "grid", role: "img", "aria-label": "The target" });
    const aim = h("figure", { hidden: true }, target, h("figcaption", {}, "What it is to learn"));
    const channels = h("ul", { class: "tiles" });
    const many = h("summary", {}),
        inside = h("details", { hidden: true }, many, channels);
    const stage = h("div", { class: "stage" }, aim, h("figure", {}, film.canvas, h("figcaption", {}, "What it does now")));
    const element = card("automaton", "The automaton", stage, film.transport, words, inside);
    film.transport.hidden = true;
    const wanted = targetOf(config.task),
        hex = isHex(config);
    film.hex = hex;
    if (wanted) {
        aim.hidden = false;
        paint(target, wanted, hex);
        paint(film.canvas, { ...wanted, bits: new Uint8Array(wanted.bits.length) }, hex);
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
        inside.hidden = false;
        film.show(grids, frame.film.steps, wanted);
        setText(words, `At epoch ${count(frame.epoch)}, from a fresh start: ${film.result()}`);
        drawTiles(frame.tiles, height, width);
    }

    function drawTiles({ step, channels: which, bits: packed }, height, width) {
        const area = height * width,
            bits = unpacked(packed, which.length * area);
        setText(many, plural(which.length, "channel"));
        for (const [channel, canvas] of tiles) {
            if (which.includes(channel)) continue;
            canvas.closest("li").remove();
            tiles.delete(channel);
        }
        which.forEach((channel, i) => {
            const canvas = tiles.get(channel) ?? tile(channel);
            const own = bits.subarray(i * area, (i + 1) * area);
            paint(canvas, { height, width, channels: 1, bits: own }, hex);
            canvas.setAttribute("aria-label", `Channel ${channel} after ${step} steps: ${own.reduce((sum, bit) => sum + bit, 0)} of ${area} cells on`);
        });
    }

    function tile(channel) {
        const canvas = h("canvas", { class: "grid", role: "img" });
        tiles.set(channel, canvas);
        channels.append(h("li", {}, canvas, h("span", {}, channel)));
        return canvas;
    }

    return { element, show };
}
