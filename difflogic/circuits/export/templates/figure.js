// The figure of every page: target, circuit with lit wires, and current state, with one row of controls and one sentence.
// A page passes a world, such as a circuit on a grid or a recording, which the controls run.

import { drawing, gatesOf, light, MOST_DRAWN, withGates } from "./drawing.js";
import { Player } from "./play.js";

const PARTS = `<div class="panels">
  <figure class="aim" hidden><figcaption></figcaption><div class="pane"><canvas id="target" class="grid" role="img" aria-label="The target"></canvas></div></figure>
  <span class="arrow" aria-hidden="true">→</span>
  <figure class="inside"><figcaption>The circuit of every cell</figcaption><div id="circuit" tabindex="0" role="group" aria-label="The circuit, drawn. Enter changes its size."></div></figure>
  <span class="arrow" aria-hidden="true">→</span>
  <figure><figcaption>Now: <span id="steps">step 0</span></figcaption><div class="pane"><canvas id="now" class="grid" tabindex="0" role="application" aria-label="The current state. Arrow keys move the cursor, Enter touches the cell."></canvas><div class="cursor" aria-hidden="true"></div></div></figure>
</div>
<div class="controls" role="group" aria-label="Run">
  <button id="play" type="button" aria-pressed="false">Play</button><button id="step" type="button">Step</button>
  <button id="damage" type="button">Damage</button><button id="again" type="button">Again</button>
</div>
<p id="sentence"></p>`;
const MOVES = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };

/** @typedef {{ width: number, height: number, cells?: ArrayLike<number>, box: (y: number, x: number) => number[] }} Layout  pixels of the canvas, the cell of each or -1, and left, top, width and height of a cell */
/**
 * @typedef {object} World
 * @property {number} height in cells
 * @property {number} width
 * @property {number} steps since the start
 * @property {number} until the step at which playing pauses, or Infinity
 * @property {(count: number) => unknown} advance
 * @property {() => unknown} again goes back to the start
 * @property {(canvas: HTMLCanvasElement) => void} paint draws the state
 * @property {() => unknown} [damage] clears the middle
 * @property {(y: number, x: number, buttons: number) => unknown} [touch] changes cells around a pointer or the cursor
 * @property {(y: number, x: number) => number[]} [inputs] the bits of a cell's neighbourhood, nine for each channel
 * @property {() => Layout} [layout] by default a pixel for each cell
 */

export class Figure extends Player {
    /** @param {HTMLElement} host */
    constructor(host) {
        const part = (/** @type {string} */ name) => /** @type {any} */ (host.querySelector(name));
        host.classList.add("triptych");
        host.innerHTML = PARTS;
        super(part("#play"), (count) => this.moveOn(count));
        /** @type {HTMLCanvasElement} */
        this.target = part("#target");
        /** @type {HTMLCanvasElement} */
        this.now = part("#now");
        /** @type {HTMLElement} */
        this.circuit = part("#circuit");
        /** @type {HTMLElement} */
        this.mark = part(".cursor");
        this.part = part;
        /** @type {World | null} */
        this.world = null;
        /** @type {number[][] | null} */
        this.rows = null;
        this.cursor = { y: 0, x: 0 };
        this.isStale = false;
        this.ended = () => {}; // called when playing reaches the last step
        this.button.addEventListener("click", () => (this.playing ? this.pause() : this.play()));
        for (const name of ["step", "damage", "again"]) part(`#${name}`).addEventListener("click", () => this.act(name));
        this.now.addEventListener("keydown", (event) => this.key(event));
        this.now.addEventListener("pointerdown", (event) => {
            if (event.isTrusted) this.now.setPointerCapture(event.pointerId);
            this.point(event);
        });
        this.now.addEventListener("pointermove", (event) => this.point(event));
        this.now.addEventListener("contextmenu", (event) => event.preventDefault());
        this.circuit.addEventListener("click", () => this.circuit.classList.toggle("large"));
        this.circuit.addEventListener("keydown", ({ key }) => key === "Enter" && this.circuit.click());
        new ResizeObserver(() => this.look()).observe(this.now);
    }

    /** Shows a world, paused; the cursor goes to its middle. @param {World} world */
    use(world) {
        this.pause();
        this.world = world;
        this.cursor = { y: world.height >> 1, x: world.width >> 1 };
        this.part("#damage").hidden = !world.damage;
        this.draw();
    }

    /** Draws a circuit, or shows the reason why there is none. @param {Parameters<typeof drawing>[0] | null} circuit @param {string} [otherwise] */
    show(circuit, otherwise = `The circuit is not drawn, because it has more than ${MOST_DRAWN} gates.`) {
        this.rows = circuit && gatesOf(circuit.rows) <= MOST_DRAWN ? circuit.rows : null;
        if (circuit && this.rows) this.circuit.innerHTML = drawing(circuit);
        else this.circuit.textContent = otherwise;
        this.circuit.classList.toggle("empty", !this.rows);
        this.look();
    }

    /** Shows the target, which the caller paints, under a title; without one hides it. @param {string} title */
    aim(title) {
        this.part(".aim").hidden = !title;
        this.part(".aim figcaption").textContent = title;
    }

    /** @param {string} sentence */
    say(sentence) {
        this.part("#sentence").textContent = sentence;
    }

    async play() {
        const { world } = this;
        if (world && world.steps >= world.until) world.until = Infinity;
        if (world) await super.play();
    }

    /** Moves the world on, up to its last step. @param {number} count */
    async moveOn(count) {
        const { world, turn } = this;
        if (!world) return;
        await world.advance(Math.max(0, Math.min(count, world.until - world.steps)));
        this.draw();
        if (this.turn !== turn || world.steps < world.until) return;
        this.pause();
        this.ended();
    }

    /** Runs the action of a button. @param {string} name step, damage or again */
    async act(name) {
        const { world } = this;
        if (name === "step") await world?.advance(1);
        else if (name === "again") await world?.again();
        else await world?.damage?.();
        this.draw();
    }

    draw() {
        if (this.isStale) return;
        this.isStale = true;
        requestAnimationFrame(() => {
            this.isStale = false;
            this.world?.paint(this.now);
            this.part("#steps").textContent = `step ${this.world?.steps ?? 0}`;
            this.look();
        });
    }

    /** @returns {Layout} */
    layout() {
        const { height, width, layout } = /** @type {World} */ (this.world);
        return layout?.() ?? { height, width, box: (y, x) => [x, y, 1, 1] };
    }

    /** Shows the cell under the cursor and lights its wires. */
    look() {
        const { world, now, rows } = this;
        if (!world) return;
        const { y, x } = this.cursor,
            { width, box } = this.layout();
        const pixels = box(y, x).map((value) => `${(value * now.clientWidth) / width}px`);
        ["left", "top", "width", "height"].forEach((name, i) => this.mark.style.setProperty(name, pixels[i]));
        if (rows && world.inputs) light(this.circuit, withGates(rows, world.inputs(y, x)));
    }

    /** @param {number} buttons that are pressed */
    touch(buttons) {
        const { world, cursor } = this;
        if (buttons & 3) Promise.resolve(world?.touch?.(cursor.y, cursor.x, buttons)).then(() => this.draw());
        this.look();
    }

    /** @param {KeyboardEvent} event */
    key(event) {
        const move = MOVES[/** @type {keyof typeof MOVES} */ (event.key)];
        if (!this.world || (!move && event.key !== "Enter")) return;
        const { height, width } = this.world;
        if (move) this.cursor = { y: (this.cursor.y + move[0] + height) % height, x: (this.cursor.x + move[1] + width) % width };
        event.preventDefault();
        this.touch(move ? 0 : 1);
    }

    /** @param {PointerEvent} event */
    point(event) {
        if (!this.world) return;
        const bounds = this.now.getBoundingClientRect(),
            { height, width, cells } = this.layout();
        const place = (/** @type {number} */ share, /** @type {number} */ count) => Math.min(count - 1, Math.max(0, Math.floor(share * count)));
        const pixel = place((event.clientY - bounds.top) / bounds.height, height) * width + place((event.clientX - bounds.left) / bounds.width, width);
        const cell = cells?.[pixel] ?? pixel;
        if (cell < 0) return;
        // The past of a line cannot be changed: a pointer on it selects a cell of the current state.
        this.cursor = { y: Math.min(this.world.height - 1, Math.floor(cell / this.world.width)), x: cell % this.world.width };
        this.touch(event.buttons);
    }
}
