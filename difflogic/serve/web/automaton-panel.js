// The target and, next to it, the newest rollout of the hard circuit; below, every channel as a tile.

import { card, h, setText } from "./dom.js";
import { count, plural } from "./format.js";
import { isHex, paint, targetOf, unpacked } from "./pixels.js";
import { Rollout } from "./rollout.js";

export function automatonPanel(config) {
    const hex = isHex(config),
        rollout = new Rollout(hex),
        tiles = new Map();
    const words = h("p", { class: "quiet" }, "It appears here shortly after training begins.");
    const target = h("canvas", { class: "grid", role: "img", "aria-label": "The target" });
    const aim = h("figure", { hidden: true }, target, h("figcaption", {}, "Target"));
    const channels = h("ul", { class: "tiles" });
    const many = h("summary", {}),
        inside = h("details", { hidden: true }, many, channels);
    const stage = h("div", { class: "stage" }, aim, h("figure", {}, rollout.canvas, h("figcaption", {}, "Now")));
    const element = card("automaton", "The automaton", stage, rollout.transport, words, inside);
    rollout.transport.hidden = true;
    const wanted = targetOf(config.task);
    if (wanted) {
        aim.hidden = false;
        paint(target, wanted, hex);
        paint(rollout.canvas, { ...wanted, bits: new Uint8Array(wanted.bits.length) }, hex);
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
        rollout.show(grids, frame.film.steps, wanted);
        setText(words, `At epoch ${count(frame.epoch)}, from a fresh initial state: ${rollout.result()}`);
        drawTiles(frame.tiles, height, width);
    }

    function drawTiles({ step, channels: numbers, bits: packed }, height, width) {
        const area = height * width,
            bits = unpacked(packed, numbers.length * area);
        setText(many, plural(numbers.length, "channel"));
        for (const [channel, canvas] of tiles) {
            if (numbers.includes(channel)) continue;
            canvas.closest("li").remove();
            tiles.delete(channel);
        }
        numbers.forEach((channel, i) => {
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
