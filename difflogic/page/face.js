// What a visitor meets: a target, two grids, and a button. Training itself is `Trainer` of trainer.js.

import { dropZone } from "../serve/web/drop-zone.js";
import { h, setText } from "../serve/web/dom.js";
import { count } from "../serve/web/format.js";
import { targetOf } from "../serve/web/pixels.js";
import { presetCards } from "../serve/web/preset-cards.js";
import { give } from "../serve/web/saving.js";
import { generations, Growth, paintState, tableOf } from "../serve/web/growth.js";
import { livingPage } from "./living.js";
import { cellsOf, Pad } from "../serve/web/pad.js";
import { cellsOfFile } from "./picture.js";
import { Progress } from "./progress.js";

/** @type {Record<string, [string, string, string]>} */
const TITLES = {
    "checkerboard-small": ["Board", "out of any noise", "Squares of two by two cells, whatever the start."],
    checkerboard: ["Large board", "with twice the gates", "Squares of two by two cells, whatever the start."],
    "game-of-life": ["Life", "Conway's rule", "What Conway's rule makes of noise."],
    "colored-g": ["Letter", "in eight colours", "Out of an empty grid, in 15 steps."],
    lizard: ["Lizard", "out of one cell", "Out of one cell, in 12 steps."],
};
const OWN = ["Your own", "draw it or drop it", "Paint on it, or drop a picture."];
const SLOW =
    "No graphics card can be used here, so that a program on the processor does its work, many times slower. Begin with the small board, which takes minutes.";
const SOUP = { side: 24, steps: 40 }; // of a rule, whose own boards are tiny
const PHONE = "A phone takes long for this and gets warm, and none has been measured yet: keep the page open while it learns.";

const element = (/** @type {string} */ id) => /** @type {HTMLElement} */ (document.getElementById(id));
const button = (/** @type {string} */ id) => /** @type {HTMLButtonElement} */ (element(id));
const canvas = (/** @type {string} */ id) => /** @type {HTMLCanvasElement} */ (element(id));
const seed = /** @type {HTMLInputElement} */ (element("seed")),
    alive = /** @type {HTMLIFrameElement} */ (element("alive"));
const pad = new Pad(canvas("target"), element("cursor"), changed);
const growth = new Growth();
const progress = new Progress(element("figures"), element("curves"));
const zone = dropZone("Drop a picture here", () => taken(zone.file()));

/** @typedef {any} Preset what plans.py writes */
/** @typedef {{ presets: Record<string, Preset> }} Plans */
/** @typedef {any} TrainEvent what `Trainer` tells */
/** @typedef {"opening" | "ready" | "training" | "paused" | "solved" | "refused"} State */

const page = {
    state: /** @type {State} */ ("opening"),
    /** @type {Plans | null} */ plans: null,
    /** @type {PageDevice | null} */ device: null,
    /** @type {Trainer | null} */ trainer: null,
    /** @type {HardCircuit | null} */ hard: null,
    /** @type {Preset | null} */ preset: null,
    side: "", // of the grid that is trained now
    looking: false,
};

/** @param {State} state */
function enter(state) {
    page.state = document.body.dataset.state = state;
    setText(button("train"), { training: "Pause", paused: "Go on", solved: "Train again" }[/** @type {string} */ (state)] ?? "Train");
    button("train").disabled = state === "opening" || state === "refused";
    button("restart").disabled = button("reseed").disabled = !page.trainer || button("train").disabled;
    seed.disabled = state === "training" || state === "paused";
    numbers();
}

const say = (/** @type {string} */ text) => setText(element("status"), text);
const numbers = () => progress.numbers(page.trainer?.state ?? null, page.side, page.device?.name ?? "–");

/** @param {{ message: string, kind?: string }} error a sentence for the visitor */
function refuse(error) {
    const again = h("button", { type: "button", onclick: () => location.reload() }, "Load the page again");
    element("refusal").replaceChildren(error.message, ...(error.kind === "lost" ? [again] : []));
    element("refusal").hidden = false;
    element("refusal").scrollIntoView({ block: "nearest" });
}

// --- what to learn

/** @param {Plans} plans */
function offer({ presets }) {
    const all = Object.values(presets),
        own = all.filter((preset) => preset.own);
    const side = (/** @type {Preset} */ preset) => preset.config.task.width * (page.device?.software ? 1 : -1);
    // A device in software gets the smaller picture, and the smallest board first.
    const mine = own.sort((one, other) => side(one) - side(other))[0];
    const offers = [...all.filter((preset) => !preset.own), ...(mine ? [mine] : [])];
    if (page.device?.software)
        offers.sort((one, other) => Number(other.name === "checkerboard-small") - Number(one.name === "checkerboard-small"));
    const told = offers.map((preset) => ({ name: titleOf(preset)[0], about: titleOf(preset)[1], config: preset.config, preset }));
    element("tasks").append(presetCards(told, (/** @type {{ preset: Preset }} */ chosen) => choose(chosen.preset)));
    choose(offers[0]);
}

const titleOf = (/** @type {Preset} */ preset) => (preset.own ? OWN : (TITLES[preset.name] ?? [preset.name, preset.about, ""]));

/** @param {Preset} preset */
async function choose(preset) {
    const before = leave();
    const { own, config } = preset,
        { height, width, start } = config.task;
    page.preset = preset;
    const picture = targetOf(config.task);
    pad.use(picture ? cellsOf(picture) : new Uint8Array(), height, width, own);
    element("own").hidden = !own;
    setText(element("target-words"), titleOf(preset)[2]);
    seed.value = String(config.seed);
    // What both grids start from: noise, one cell or nothing.
    const middle = (height >> 1) * width + (width >> 1),
        noise = start === "random" || start === "boards";
    const cells = soup(height * width).map((cell, i) => (noise ? cell : Number(start === "seed" && i === middle)));
    for (const id of ["soft", "hard"]) paintState(canvas(id), { height, width, visible: 1 }, cells);
    if (!picture) {
        const start = soup(SOUP.side ** 2);
        paintState(canvas("hard"), rule(start), start);
        growth.show([rule(start)], () => {});
    }
    setText(element("soft-words"), "Each gate is a mixture of all sixteen.");
    setText(element("hard-words"), "Of each gate the likeliest: the circuit.");
    progress.clear();
    say("");
    await before;
    enter(page.device ? "ready" : "refused");
}

const soup = (/** @type {number} */ cells) => Uint8Array.from({ length: cells }, () => Number(Math.random() < 0.5));

// A rule has no picture: what it makes of noise is the target.
/** @param {Uint8Array} start */
function rule(start) {
    const states = generations(/** @type {Uint8Array} */ (tableOf(page.preset?.config.task.rule)), start, SOUP.side, SOUP.steps);
    return { canvas: canvas("target"), height: SOUP.side, width: SOUP.side, visible: 1, states };
}

// The picture is another one now, and what was trained is of the last.
function changed() {
    if (page.trainer) leave().then(() => enter("ready"));
    element("refusal").hidden = true;
}

/** @param {File | null} file */
async function taken(file) {
    const own = page.plans && [...element("tasks").querySelectorAll("input")].find((input) => input.value === OWN[0]);
    if (!file || !own) return;
    element("refusal").hidden = true;
    try {
        if (!own.checked) own.click();
        const cells = await cellsOfFile(file, pad.width, pad.height);
        pad.change((old) => old.set(cells));
        say(`\u2068${file.name}\u2069 is ${pad.width} by ${pad.height} cells now.`);
    } catch (error) {
        refuse(/** @type {Error} */ (error));
    }
    zone.take(null);
}

// --- train

async function leave() {
    const { trainer } = page;
    Object.assign(page, { trainer: null, hard: null });
    growth.stop();
    element("solved").hidden = element("progress").hidden = element("refusal").hidden = true;
    alive.srcdoc = "";
    await trainer?.close();
}

async function train() {
    if (page.state === "paused") return page.trainer?.resume();
    if (page.state === "training") return page.trainer?.pause();
    await leave();
    const { device, plans, preset } = page;
    if (!device || !plans || !preset) return;
    progress.clear();
    const trainer = new Trainer(device, plans, preset.name, {
        seed: seed.valueAsNumber >>> 0,
        picture: preset.own ? pad.rows() : undefined,
        tell: (/** @type {TrainEvent} */ event) => page.trainer === trainer && told(event),
    });
    page.trainer = trainer;
    enter("training");
    say("Preparing the device.");
    try {
        await trainer.train();
    } catch (error) {
        if (page.trainer !== trainer) return;
        await leave();
        enter(page.device ? "ready" : "refused");
        say("");
        refuse(/** @type {Error} */ (error));
    }
}

// What each event says to the visitor.
/** @type {Record<string, (event: TrainEvent) => string>} */
const WORDS = {
    compiling: ({ done, total }) =>
        `The graphics driver compiles kernel ${Math.min(done + 1, total)} of ${total}: the first time takes longest.`,
    attempt: ({ number, why }) => (why ? `Attempt ${number} with another wiring, because of the last one: ${why}.` : "It learns."),
    stage: ({ stage, width, height }) => (stage ? `It has grown, and learns on ${width} by ${height} cells.` : element("status").textContent),
    search: () => "It searches: gates are exchanged as long as more cells are right.",
    repaired: ({ gates }) => `${count(gates)} gates more set the last wrong cells right.`,
    restarted: () => "It begins again.",
    paused: () => "Paused.",
    resumed: () => "It learns.",
    hidden: () => "The page is in the background: training waits until you are back.",
    visible: () => "It learns.",
};

/** @param {TrainEvent} event */
function told(event) {
    /** @type {Record<string, () => void>} */
    const actions = {
        compiling: () => Object.assign(element("progress"), { max: event.total, value: event.done }),
        attempt: () => progress.clear(),
        stage: () => (page.side = `${event.width}×${event.height}`),
        epochs: () => progress.epochs(event),
        evaluation: () => judged(event),
        solved: () => solved(event),
        paused: () => enter("paused"),
        resumed: () => enter("training"),
    };
    if (event.kind in WORDS) say(WORDS[event.kind](event));
    element("progress").hidden = event.kind !== "compiling" || event.done === event.total;
    actions[event.kind]?.();
    numbers();
}

/** @param {{ epoch: number, wrong: number, values: number }} event */
function judged(event) {
    const wrong = `${count(event.wrong)} of ${count(event.values)} values are wrong.`;
    setText(element("hard-words"), event.wrong ? wrong : "Every value is right.");
    progress.evaluation(event);
    look();
}

async function look() {
    const { trainer, preset } = page;
    if (!trainer || !preset || page.looking) return;
    page.looking = true;
    try {
        const decided = await trainer.decided(),
            { soft, hard, epoch, ...shape } = await trainer.look();
        /** @type {Parameters<Growth["show"]>[0]} */
        const films = [
            { canvas: canvas("soft"), ...shape, states: soft },
            { canvas: canvas("hard"), ...shape, states: hard },
        ];
        if (preset.config.task.target === "rule") {
            const start = soup(SOUP.side ** 2),
                states = (await trainer.circuit()).rollout(start, SOUP.side, SOUP.side, SOUP.steps);
            films.splice(1, 1, { ...films[1], height: SOUP.side, width: SOUP.side, states }, rule(start));
        }
        if (page.trainer !== trainer) return;
        progress.decided = decided;
        numbers();
        const step = (/** @type {number} */ at, /** @type {number} */ last) =>
            films.length > 2 ? "a step of one board" : `step ${at} of ${last}`;
        growth.show(films, (at, last) => setText(element("soft-words"), `Epoch ${count(epoch)}, ${step(at, last)}.`));
    } catch {
        // Training ends by the same error, and says so.
    } finally {
        page.looking = false;
    }
}

/** @param {number} number */
function restart(number) {
    seed.value = String(number);
    if (page.state === "solved") train();
    else page.trainer?.restart(number);
}

// --- solved

/** @param {{ epoch: number, seed: number }} event */
async function solved({ epoch, seed: found }) {
    const { trainer, preset } = page,
        hard = await trainer?.circuit();
    if (!hard || !preset || page.trainer !== trainer) return;
    page.hard = hard;
    alive.srcdoc = livingPage(hard, preset.own ? "Your own picture" : titleOf(preset)[0]);
    setText(element("solved-title"), `Solved at epoch ${count(epoch)} with seed ${found}`);
    element("solved").hidden = false;
    enter("solved");
    say("Solved: every value is right. Below it lives: damage it with the brush.");
    look();
}

/** @param {string} name @param {string} type @param {string | undefined} text */
const save = (name, type, text) => give(name, new Blob([text ?? ""], { type }));

// The living page is as high as it is, and its brush damages.
alive.addEventListener("load", () => {
    const inner = alive.contentDocument,
        brush = /** @type {HTMLSelectElement | null} */ (inner?.getElementById("brush"));
    if (!inner || !brush) return;
    brush.value = "damage";
    inner.getElementById("train-it")?.remove(); // this is done already
    new ResizeObserver(() => (alive.style.blockSize = `${inner.body.offsetHeight}px`)).observe(inner.body);
});

// --- begin

const listen = (/** @type {string} */ id, /** @type {() => unknown} */ action) => element(id).addEventListener("click", action);
listen("train", train);
listen("restart", () => restart(page.trainer?.state.seed ?? 0));
listen("reseed", () => restart(Math.floor(Math.random() * 1e6)));
listen("save-circuit", () => save("circuit.json", "application/json", page.hard?.json()));
listen("save-config", () => save("config.toml", "application/toml", page.hard?.config()));
listen("save-page", () => save("automaton.html", "text/html", alive.srcdoc));
element("own").append(pad.tools, zone.element);
document.addEventListener("paste", (event) => taken(event.clipboardData?.files[0] ?? null));
document.addEventListener("dragover", (event) => event.preventDefault());
document.addEventListener("drop", (event) => {
    if (!event.defaultPrevented) taken(event.dataTransfer?.files[0] ?? null);
    event.preventDefault(); // else the browser leaves the page for the file
});

async function open() {
    say("It unpacks what can be learned, and looks for a graphics card.");
    try {
        page.plans = await readPlans();
        page.device = await openDevice();
    } catch (error) {
        setTimeout(refuse, 0, error); // after what is offered, which clears such sentences
    }
    say("");
    if (page.plans) offer(page.plans);
    const { device } = page;
    if (!device) return enter("refused");
    const notice = device.software ? SLOW : matchMedia("(pointer: coarse) and (max-width: 600px)").matches ? PHONE : "";
    setText(element("notice"), notice);
    element("notice").hidden = !notice;
    const error = await device.lost;
    page.device = null;
    await leave();
    enter("refused");
    refuse(error);
}

open();
