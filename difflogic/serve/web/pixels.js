// Cells on a canvas: bits unpacked, pictures decoded, colours as everywhere in this project.

import { h } from "./dom.js";

const ALPHABET = ".123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz+/"; // as in difflogic/core/text_picture.py

// The bits of a base64 text, eight to a byte, the first the highest: a Uint8Array of 0 and 1, `count` long.
export function unpacked(base64, count) {
    const text = atob(base64),
        bits = new Uint8Array(count);
    for (let i = 0; i < count; i++) bits[i] = (text.charCodeAt(i >> 3) >> (7 - (i & 7))) & 1;
    return bits;
}

// A picture of a configuration, rows of characters: {height, width, channels, bits [channels, H, W]}.
function decoded(rows, channels) {
    const height = rows.length,
        width = rows[0].length,
        bits = new Uint8Array(channels * height * width);
    rows.forEach((row, y) => {
        for (let x = 0; x < width; x++) {
            const value = ALPHABET.indexOf(row[x]);
            for (let c = 0; c < channels; c++) bits[(c * height + y) * width + x] = (value >> c) & 1;
        }
    });
    return { height, width, channels, bits };
}

// What a task's configuration wants to see; null for a rule, whose target depends on the start.
export function targetOf(task) {
    if (task.target === "picture") return decoded(task.picture, task.loss_channels);
    if (task.target !== "checkerboard") return null;
    const { height, width } = task,
        bits = new Uint8Array(height * width);
    for (let y = 0; y < height; y++) for (let x = 0; x < width; x++) bits[y * width + x] = ((x >> 1) + (y >> 1)) & 1;
    return { height, width, channels: 1, bits };
}

// [red, green, blue] of a cell from its first channels, as in difflogic/runs/plots.py.
function colour(grid, place) {
    const { channels, bits } = grid,
        area = grid.height * grid.width;
    const bit = (c) => (c < channels ? bits[c * area + place] : 0);
    if (channels === 1) return Array(3).fill(255 * bit(0));
    return [0, 1, 2].map((c) => (channels > 3 ? 85 * (2 * bit(c) + bit(c + 3)) : 255 * bit(c)));
}

// Draws a grid {height, width, channels, bits [channels, H, W]}, a pixel a cell; the style sheet scales it up.
export function paint(canvas, grid) {
    paintRgb(canvas, grid.height, grid.width, (place) => colour(grid, place));
}

export function paintRgb(canvas, height, width, at) {
    if (canvas.width !== width || canvas.height !== height) {
        Object.assign(canvas, { width, height });
        canvas.style.aspectRatio = `${width} / ${height}`;
    }
    const image = new ImageData(width, height);
    for (let place = 0; place < height * width; place++) {
        const [red, green, blue] = at(place);
        image.data.set([red, green, blue, 255], 4 * place);
    }
    canvas.getContext("2d").putImageData(image, 0, 0);
}

// A small picture of what a job is to learn; a rule or environment is written as its name, a follow-up as its
// kind.
export function thumbnail({ config, kind }) {
    const target = config?.task ? targetOf(config.task) : null;
    if (!target) {
        const rule = config?.task?.rule.replace("/", "\n") ?? config?.environment.id.split("-v")[0];
        const word = rule?.slice(0, 8) ?? kind;
        return h("span", { class: "thumbnail word", "aria-hidden": "true" }, word);
    }
    const canvas = h("canvas", { class: "thumbnail", "aria-hidden": "true" });
    paint(canvas, target);
    return canvas;
}
