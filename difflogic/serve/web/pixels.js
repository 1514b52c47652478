// Cells on a canvas: unpacks bits, decodes images, and paints in the colours of this project.

import { h, s } from "./dom.js";

const ALPHABET = ".123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz+/"; // as in difflogic/core/text_picture.py

// The bits of a base64 text, eight to a byte, the first the highest: a Uint8Array of 0 and 1, `count` long.
export function unpacked(base64, count) {
    const text = atob(base64),
        bits = new Uint8Array(count);
    for (let i = 0; i < count; i++) bits[i] = (text.charCodeAt(i >> 3) >> (7 - (i & 7))) & 1;
    return bits;
}

// An image of a configuration, rows of characters, as {height, width, channels, bits [channels, H, W]}.
function decoded(rows, channels) {
    const cells = [...rows.join("")].map((character) => ALPHABET.indexOf(character));
    const bits = Array.from({ length: channels }, (_, c) => cells.map((value) => (value >> c) & 1));
    return { height: rows.length, width: rows[0].length, channels, bits: Uint8Array.from(bits.flat()) };
}

// The target of a task; null for a rule, whose target depends on the initial state.
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

// Whether the cells of a configuration are hexagons.
export const isHex = (config) => config.model?.neighbourhood === "hex";

// Draws a grid {height, width, channels, bits [channels, H, W]}, one pixel for each cell, which the style sheet scales up.
// Cells with six neighbours are hexagons of several pixels.
export function paint(canvas, grid, hex = false) {
    paintRgb(canvas, grid.height, grid.width, (place) => colour(grid, place), hex);
}

export function paintRgb(canvas, height, width, at, hex = false) {
    const { wide, high, cells } = hex ? hexagons(height, width) : { wide: width, high: height };
    if (canvas.width !== wide || canvas.height !== high) {
        Object.assign(canvas, { width: wide, height: high });
        canvas.style.aspectRatio = `${wide} / ${high}`;
    }
    const image = new ImageData(wide, high);
    for (let pixel = 0; pixel < high * wide; pixel++) {
        const place = cells ? cells[pixel] : pixel;
        if (place === height * width) continue; // around the hexagons
        const [red, green, blue] = at(place);
        image.data.set([red, green, blue, 255], 4 * pixel);
    }
    canvas.getContext("2d").putImageData(image, 0, 0);
}

const HEXAGON = 8; // pixels across
const layouts = new Map();

// For each pixel of a grid of hexagons its cell, as `pixels_of` of difflogic/runs/film.py: the one whose centre is nearest,
// in the two rows between whose centres the pixel lies; height * width if there is none.
export function hexagons(height, width) {
    const key = `${height} ${width}`;
    if (layouts.has(key)) return layouts.get(key);
    const step = (HEXAGON * Math.sqrt(3)) / 2,
        radius = HEXAGON / Math.sqrt(3);
    const high = Math.ceil((height - 1) * step + 2 * radius),
        wide = Math.ceil((width + (height - 1) / 2) * HEXAGON);
    const cells = Int32Array.from({ length: high * wide }, (_, pixel) => {
        const y = Math.floor(pixel / wide) + 0.5 - radius,
            x = (pixel % wide) + 0.5;
        const near = [0, 1].map((below) => {
            const row = Math.floor(y / step) + below,
                left = ((height - 1 - row) / 2 + 0.5) * HEXAGON,
                column = Math.round((x - left) / HEXAGON);
            return { row, column, away: (x - left - column * HEXAGON) ** 2 + (y - row * step) ** 2 };
        });
        const { row, column } = near[0].away <= near[1].away ? near[0] : near[1];
        return row >= 0 && row < height && column >= 0 && column < width ? row * width + column : height * width;
    });
    layouts.set(key, { wide, high, cells });
    return layouts.get(key);
}

const DRAWINGS = {
    "CartPole-v1": "M4 36H40M12 28H30V36H12ZM21 28L29 8",
    "Acrobot-v1": "M14 10H30M22 10L14 23L25 35M23.5 10a1.5 1.5 0 1 0-3 0a1.5 1.5 0 1 0 3 0M15.5 23a1.5 1.5 0 1 0-3 0a1.5 1.5 0 1 0 3 0",
    "Pendulum-v1": "M22 28V10M25 31a3 3 0 1 0-6 0a3 3 0 1 0 6 0M12 12A14 14 0 0 1 32 12M32 12l-1-5M32 12l-5 0",
    "LunarLander-v3": "M4 38L12 34H32L40 38M15 14H29V24H15ZM17 24L12 31M27 24L32 31M22 24V29",
};

// A small image of the target of a job; a rule or environment is shown by its name, a post-processing job by its kind.
export function thumbnail({ config: own, kind = "" }) {
    const config = own?.config ?? own; // a sweep has the configuration of its trials
    const target = config?.task ? targetOf(config.task) : null;
    if (!target) {
        const rule = config?.task?.rule.replace("/", "\n") ?? config?.table?.label ?? config?.environment?.id.split("-v")[0];
        const drawing = DRAWINGS[config?.environment?.id];
        if (drawing) return h("span", { class: "thumbnail task", "aria-hidden": "true" }, s("svg", { viewBox: "0 0 44 44" }, s("path", { d: drawing })));
        const word = rule?.slice(0, 8) ?? kind;
        return h("span", { class: "thumbnail word", "aria-hidden": "true" }, word);
    }
    const canvas = h("canvas", { class: "thumbnail", "aria-hidden": "true" });
    paint(canvas, target, isHex(config));
    return canvas;
}
