// A drawing pad: cells are painted with a brush or by keys.

import { buttonGroup, h, setText } from "./dom.js";
import { plural } from "./format.js";
import { paintRgb } from "./pixels.js";

const COLOURS = ["black", "red", "green", "yellow", "blue", "magenta", "cyan", "white"]; // 1 red, 2 green, 4 blue
const MOVES = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
const MOST_UNDONE = 100;

// The bits `[channels, H, W]` of an image as eight colours; one channel is white.
/** @param {{ channels: number, bits: Uint8Array, height: number, width: number }} image */
export function cellsOf({ channels, bits, height, width }) {
    const factors = channels === 1 ? [7] : [1, 2, 4],
        area = height * width;
    return Uint8Array.from({ length: area }, (_, i) => factors.reduce((sum, factor, c) => sum + factor * bits[c * area + i], 0));
}

/** @param {number} colour */
const rgbOf = (colour) => [255 * (colour & 1), 255 * ((colour >> 1) & 1), 255 * ((colour >> 2) & 1)];

export class Pad {
    /**
     * @param {HTMLCanvasElement} canvas
     * @param {HTMLElement} cursor marks the cell that keys paint
     * @param {() => void} changed is called after each change
     * @param {() => boolean} inverted returns true if the caller inverts the file that the image is read from
     */
    constructor(canvas, cursor, changed, inverted = () => false) {
        this.canvas = canvas;
        this.cursor = cursor;
        this.changed = changed;
        this.inverted = inverted;
        this.height = this.width = 16;
        /** @type {Uint8Array} */
        this.cells = new Uint8Array();
        this.at = { y: 8, x: 8 };
        this.colour = 7;
        this.enabled = false;
        /** @type {Uint8Array[]} */
        this.before = [];
        this.status = h("p", { class: "unseen", role: "status" });
        this.undo = /** @type {HTMLButtonElement} */ (h("button", { type: "button", disabled: true, onclick: () => this.goBack() }, "Undo"));
        const clear = h("button", { type: "button", onclick: () => this.change((cells) => cells.fill(0)) }, "Clear");
        const invert = h("button", { type: "button", onclick: () => this.invert() }, "Invert it");
        this.tools = h("div", { class: "tools" }, this.palette(), buttonGroup("Change the image", this.undo, clear, invert), this.status);
        canvas.addEventListener("pointerdown", (event) => this.begin(event));
        canvas.addEventListener("pointermove", (event) => this.enabled && event.buttons & 1 && this.draw(event));
        canvas.addEventListener("keydown", (event) => this.enabled && this.key(event));
        new ResizeObserver(() => this.show()).observe(canvas);
    }

    palette() {
        const swatch = (/** @type {string} */ name, /** @type {number} */ colour) => {
            const onchange = () => (this.colour = colour);
            const input = h("input", { type: "radio", name: "colour", value: colour, checked: colour === this.colour, "aria-label": name, onchange });
            return h("label", { class: "swatch", title: `${name} (${colour})` }, input, h("span", { class: `colour-${colour}` }));
        };
        return h("div", { class: "palette", role: "radiogroup", "aria-label": "Colour of the brush" }, COLOURS.map(swatch));
    }

    /** @param {PointerEvent} event */
    begin(event) {
        if (!this.enabled || event.button !== 0) return;
        if (event.isTrusted) this.canvas.setPointerCapture(event.pointerId);
        this.remember();
        this.draw(event);
    }

    /** @param {PointerEvent} event */
    draw(event) {
        const box = this.canvas.getBoundingClientRect();
        const place = (/** @type {number} */ share, /** @type {number} */ count) =>
            Math.min(count - 1, Math.max(0, Math.floor(share * count)));
        this.at = { y: place((event.clientY - box.top) / box.height, this.height), x: place((event.clientX - box.left) / box.width, this.width) };
        this.paint();
    }

    /** @param {KeyboardEvent} event */
    key(event) {
        if (event.altKey || ((event.ctrlKey || event.metaKey) && event.key !== "z")) return;
        const move = MOVES[/** @type {keyof typeof MOVES} */ (event.key)];
        if (event.key === "z") this.goBack();
        else if (move)
            this.at = { y: (this.at.y + move[0] + this.height) % this.height, x: (this.at.x + move[1] + this.width) % this.width };
        else if (/^[0-7]$/.test(event.key)) this.choose(Number(event.key));
        else if (event.key === "Enter" || event.key === " ") {
            this.remember();
            this.paint();
        } else return;
        event.preventDefault();
        this.show();
        const { y, x } = this.at;
        setText(this.status, `Row ${y + 1}, column ${x + 1}: ${COLOURS[this.cells[y * this.width + x]]}. Brush: ${COLOURS[this.colour]}.`);
    }

    /** @param {number} colour */
    choose(colour) {
        this.colour = colour;
        /** @type {HTMLInputElement} */ (this.tools.querySelector(`[value="${colour}"]`)).checked = true;
    }

    paint() {
        this.cells[this.at.y * this.width + this.at.x] = this.colour;
        this.show();
        this.changed();
    }

    remember() {
        this.before = [...this.before, this.cells.slice()].slice(-MOST_UNDONE);
        this.undo.disabled = false;
    }

    goBack() {
        const cells = this.before.pop();
        if (cells) this.cells = cells;
        this.undo.disabled = !this.before.length;
        this.show();
        this.changed();
    }

    /** @param {(cells: Uint8Array) => void} edit */
    change(edit) {
        this.remember();
        edit(this.cells);
        this.show();
        this.changed();
    }

    invert() {
        if (!this.inverted()) this.change((cells) => cells.set(cells.map((cell) => 7 - cell)));
    }

    // Crops or extends the image around its middle.
    /** @param {number} side */
    resize(side) {
        const cells = new Uint8Array(side * side),
            down = (side - this.height) >> 1,
            right = (side - this.width) >> 1;
        this.cells.forEach((cell, i) => {
            const y = Math.floor(i / this.width) + down,
                x = (i % this.width) + right;
            if (y >= 0 && y < side && x >= 0 && x < side) cells[y * side + x] = cell;
        });
        this.use(cells, side, side, true);
        this.changed();
    }

    // Shows another image without a history; without cells the caller draws.
    /** @param {Uint8Array} cells @param {number} height @param {number} width @param {boolean} enabled whether it may be painted on */
    use(cells, height, width, enabled) {
        Object.assign(this, { cells, height, width, enabled, before: [], at: { y: height >> 1, x: width >> 1 } });
        this.undo.disabled = true;
        this.show();
    }

    show() {
        const { canvas, cells, height, width } = this;
        const lit = plural(cells.filter(Boolean).length, "cell"),
            keys = this.enabled ? " Arrow keys move, Enter paints, 0 to 7 choose a colour, Z undoes." : "";
        const words = `The target: ${width} by ${height} cells, ${lit} lit.${keys}`;
        canvas.setAttribute("aria-label", cells.length ? words : "The rule after some steps from noise");
        if (cells.length) paintRgb(canvas, height, width, (/** @type {number} */ place) => rgbOf(cells[place]));
        canvas.setAttribute("role", this.enabled ? "application" : "img");
        canvas.tabIndex = this.enabled ? 0 : -1;
        this.cursor.hidden = !this.enabled;
        const side = canvas.clientWidth / width;
        Object.assign(this.cursor.style, { left: `${this.at.x * side}px`, top: `${this.at.y * side}px`, width: `${side}px`, height: `${side}px` });
    }

    /** @returns {Promise<Blob | null>} one pixel for each cell */
    png() {
        const canvas = /** @type {HTMLCanvasElement} */ (h("canvas", {}));
        paintRgb(canvas, this.height, this.width, (/** @type {number} */ place) => rgbOf(this.cells[place]));
        return new Promise((resolve) => canvas.toBlob(resolve));
    }

    /** Returns the rows of text of a configuration. */
    rows() {
        return Array.from({ length: this.height }, (_, y) =>
            [...this.cells.subarray(y * this.width, (y + 1) * this.width)].map((cell) => cell || ".").join(""),
        );
    }
}
