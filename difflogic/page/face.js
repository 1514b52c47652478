// The page that a visitor sees: the figure and its controls. `Trainer` of trainer.js does the training.

import { gatesOf } from "../circuits/export/templates/drawing.js";
import { Figure } from "../circuits/export/templates/figure.js";
import { dropZone } from "../serve/web/drop-zone.js";
import { h, mayMove, setText } from "../serve/web/dom.js";
import { count, plural } from "../serve/web/format.js";
import { targetOf } from "../serve/web/pixels.js";
import { presetCards } from "../serve/web/preset-cards.js";
import { give } from "../serve/web/saving.js";
import { generations, paintState, tableOf } from "../serve/web/growth.js";
import { livingPage } from "./living.js";
import { cellsOf, Pad } from "../serve/web/pad.js";
import { cellsOfFile } from "./picture.js";
import { Progress } from "./progress.js";
import { hardWorld } from "./world.js";

/** @type {Record<string, [string, string]>} */
const TITLES = {
    "checkerboard-small": ["Board", "out of any noise"],
    checkerboard: ["Large board", "with twice the gates"],
    "game-of-life": ["Life", "Conway's rule"],
    "colored-g": ["Letter", "in eight colours"],
    lizard: ["Lizard", "out of one cell"],
};
const OWN = ["Your own", "draw it or drop it"];
const SLOW =
    "No graphics card is available here, so the processor emulates one, which is many times slower. Start with the small board, which takes minutes.";
const ONE_COLOUR = "Your image has a single colour, so there is nothing to learn: draw in at least two.";
const UNNAMED = "My image",
    TRAINING = "Training.";
const BEFORE = "The gates appear here during training.",
    LEARNED = "This image is being trained. To draw another one, press Change the image.";
const GROWS = 1.6, // seconds of a rollout during training
    FASTEST = 22; // steps a second
const SOUP = { side: 24, steps: 40 }; // grid of a rule, whose training boards are tiny
const PHONE = "Training takes long on a phone, makes it warm, and has not been measured on one yet: keep the page open.";

const element = (/** @type {string} */ id) => /** @type {HTMLElement} */ (document.getElementById(id));
const button = (/** @type {string} */ id) => /** @type {HTMLButtonElement} */ (element(id));
const seed = /** @type {HTMLInputElement} */ (element("seed")),
    soft = /** @type {HTMLCanvasElement} */ (element("soft"));
const figure = new Figure(element("figure"));
const cursor = h("div", { class: "cursor", hidden: true });
const pad = new Pad(figure.target, cursor, () => (element("refusal").hidden = true));
const progress = new Progress(element("figures"), element("curves"));
const zone = dropZone("Drop an image here", () => takeFile(zone.file()));
const tools = h("div", {}, pad.tools, zone.element),
    redraw = h("button", { type: "button", hidden: true, onclick: () => leave().then(() => enter("ready")) }, "Change the image");

/** @typedef {any} Preset as plans.py writes it */
/** @typedef {{ presets: Record<string, Preset>, constants: any, recorded: any }} Plans */
/** @typedef {any} TrainEvent an event of `Trainer` */
/** @typedef {"opening" | "ready" | "training" | "paused" | "solved" | "refused"} State */

const page = {
    state: /** @type {State} */ ("opening"),
    /** @type {Plans | null} */ plans: null,
    /** @type {PageDevice | null} */ device: null,
    /** @type {Trainer | null} */ trainer: null,
    /** @type {HardCircuit | null} */ hard: null,
    /** @type {Preset | null} */ preset: null,
    name: UNNAMED, // of the visitor's own image
    side: "", // of the grid that is trained now
    /** @type {Uint8Array | null} */ noise: null, // initial state of a rule
    last: 0, // step of a growth
    /** @type {(() => void) | null} */ next: null, // shows the next circuit
    looking: false,
};

/** @param {State} state */
function enter(state) {
    page.state = document.body.dataset.state = state;
    setText(button("train"), { training: "Pause", paused: "Resume", solved: "Train again" }[/** @type {string} */ (state)] ?? "Train");
    button("train").disabled = state === "opening" || state === "refused";
    button("restart").disabled = button("reseed").disabled = !page.trainer || button("train").disabled;
    seed.disabled = state === "training" || state === "paused";
    // A stray click does not change an image that is being trained.
    const isOwn = Boolean(page.preset?.own);
    pad.enabled = isOwn && !page.trainer;
    pad.show();
    pad.tools.hidden = tools.hidden = !pad.enabled;
    redraw.hidden = !isOwn || !page.trainer;
    numbers();
}

const say = (/** @type {string} */ text) => setText(element("status"), text);
function numbers() {
    progress.numbers(page.trainer?.state ?? null, page.side, page.device?.name ?? "–");
    setText(element("left"), page.state === "training" ? progress.left(page.trainer?.state ?? null) : "");
}

/** Shows an error. @param {{ message: string, kind?: string }} error */
function refuse(error) {
    const again = h("button", { type: "button", onclick: () => location.reload() }, "Reload the page");
    element("refusal").replaceChildren(error.message, ...(error.kind === "lost" ? [again] : []));
    element("refusal").hidden = false;
    element("refusal").scrollIntoView({ block: "nearest" });
}

// --- presets

/** @param {Plans} plans */
function offer({ presets }) {
    const all = Object.values(presets),
        own = all.filter((preset) => preset.own);
    const side = (/** @type {Preset} */ preset) => preset.config.task.width * (page.device?.software ? 1 : -1);
    // A software device gets the smaller image, and the smallest board first.
    const isFirst = (/** @type {Preset} */ preset) => (page.device?.software ? preset.name === "checkerboard-small" : preset.own);
    const mine = own.sort((one, other) => side(one) - side(other)).slice(0, 1);
    const offers = [...mine, ...all.filter((preset) => !preset.own)].sort((one, other) => Number(isFirst(other)) - Number(isFirst(one)));
    const cards = offers.map((preset) => ({ name: titleOf(preset)[0], about: titleOf(preset)[1], config: preset.config, preset }));
    element("tasks").append(presetCards(cards, (/** @type {{ preset: Preset }} */ chosen) => choose(chosen.preset)));
    choose(offers[0]);
}

const titleOf = (/** @type {Preset} */ preset) => (preset.own ? OWN : TITLES[preset.name]);

/** @param {Preset} preset */
async function choose(preset) {
    const before = leave();
    const { own, config } = preset,
        { height, width } = config.task;
    page.preset = preset;
    page.name = UNNAMED;
    const target = targetOf(config.task);
    pad.use(target ? cellsOf(target) : new Uint8Array(), height, width, own);
    figure.aim(target ? "Target" : `Target, after ${SOUP.steps} steps`);
    figure.show(null, BEFORE);
    figure.say("");
    seed.value = String(config.seed);
    // The initial state is noise, one cell or nothing. A rule has no image: its target is the state after some steps from noise.
    const shape = target ? { height, width, visible: 1 } : { height: SOUP.side, width: SOUP.side, visible: 1 };
    const cells = initialState(config.task, 1, shape.height, shape.width);
    page.noise = target ? null : cells;
    page.last = 0;
    const table = tableOf(config.task.rule);
    if (!target && table) paintState(figure.target, shape, generations(table, cells, SOUP.side, SOUP.steps)[SOUP.steps]);
    figure.part(".controls").hidden = true;
    figure.use({ ...shape, steps: 0, until: 0, advance() {}, again() {}, paint: (canvas) => paintState(canvas, shape, cells) });
    progress.clear();
    say("");
    await before;
    enter(page.device ? "ready" : "refused");
}

// Plays a circuit, that of a rule on a larger grid; `shown` is called with each step.
/** @param {HardCircuit} hard @param {Parameters<typeof hardWorld>[1]} place @param {(step: number) => void} [shown] */
function watch(hard, place, shown, stays = false) {
    const { noise } = page,
        { channels } = hard.layout;
    const start = noise && Uint8Array.from({ length: noise.length * channels }, (_, i) => (i % channels ? 0 : noise[i / channels]));
    const world = hardWorld(hard, start ? { height: SOUP.side, width: SOUP.side, steps: SOUP.steps, initial: start } : place, shown);
    page.last = world.until;
    if (stays) world.until = Infinity;
    page.next = null;
    figure.part(".controls").hidden = false;
    figure.speed = Math.min(FASTEST, page.last / GROWS);
    figure.use(world);
    figure.show({ rows: hard.rows, outputs: hard.outputs, channels, visible: hard.preset.config.task.loss_channels });
    if (mayMove()) figure.play();
    else world.advance(page.last);
}

// During training a rollout plays to its end before that of the next circuit begins.
figure.ended = () => setTimeout(() => page.next?.(), 700);

/** @param {File | null} file */
async function takeFile(file) {
    const own = page.plans && [...element("tasks").querySelectorAll("input")].find((input) => input.value === OWN[0]);
    if (!file || !own) return;
    element("refusal").hidden = true;
    if (page.trainer) return say(LEARNED);
    try {
        if (!own.checked) own.click();
        const { cells, isInverted } = await cellsOfFile(file, pad.width, pad.height);
        pad.change((old) => old.set(cells));
        page.name = file.name.replace(/\.[^.]*$/, "");
        say(`\u2068${file.name}\u2069 is ${pad.width} by ${pad.height} cells now.${isInverted ? " It is dark on light and is inverted." : ""}`);
        if (isInverted) element("status").append(" ", h("button", { type: "button", class: "chip", onclick: invertedBack }, "Invert it"));
    } catch (error) {
        refuse(/** @type {Error} */ (error));
    }
    zone.take(null);
}

function invertedBack() {
    pad.invert();
    say("The lightness is as in the file.");
}

// --- train

async function leave() {
    const { trainer } = page;
    Object.assign(page, { trainer: null, hard: null, next: null });
    element("solved").hidden = element("progress").hidden = element("refusal").hidden = element("progress-card").hidden = true;
    await trainer?.close();
}

async function train() {
    if (page.state === "paused") return page.trainer?.resume();
    if (page.state === "training") return page.trainer?.pause();
    await leave();
    const { device, plans, preset } = page;
    if (!device || !plans || !preset) return;
    if (preset.own && new Set(pad.cells).size < 2) return refuse({ message: ONE_COLOUR });
    progress.clear();
    const trainer = new Trainer(device, plans, preset.name, {
        seed: seed.valueAsNumber >>> 0,
        picture: preset.own ? pad.rows() : undefined,
        onEvent: (/** @type {TrainEvent} */ event) => page.trainer === trainer && onEvent(event),
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

// The message of each event.
/** @type {Record<string, (event: TrainEvent) => string>} */
const MESSAGES = {
    compiling: ({ done, total }) =>
        `The graphics driver compiles kernel ${Math.min(done + 1, total)} of ${total}: the first time takes longest.`,
    attempt: ({ number, why }) => (why ? `Attempt ${number} with new wiring, because the last one stopped: ${why}.` : TRAINING),
    stage: ({ stage, width, height }) =>
        stage ? `The grid grows: training on ${width} by ${height} cells.` : element("status").textContent,
    search: () => "Search: gates are exchanged as long as fewer cells are wrong.",
    repaired: ({ gates }) => `Repaired: ${count(gates)} more gates correct the last wrong cells.`,
    restarted: () => "Training restarts.",
    paused: () => "Paused.",
    resumed: () => TRAINING,
    hidden: () => "The page is in the background: training waits until you return.",
    visible: () => TRAINING,
};

/** @param {TrainEvent} event */
function onEvent(event) {
    /** @type {Record<string, () => void>} */
    const actions = {
        compiling: () => Object.assign(element("progress"), { max: event.total, value: event.done }),
        attempt: () => progress.clear(),
        stage: () => (page.side = `${event.width}×${event.height}`),
        epochs: () => {
            progress.epochs(event);
            element("progress-card").hidden = false;
        },
        evaluation: () => evaluated(event),
        solved: () => solved(event),
        paused: () => enter("paused"),
        resumed: () => enter("training"),
    };
    if (event.kind in MESSAGES) say(MESSAGES[event.kind](event));
    element("progress").hidden = event.kind !== "compiling" || event.done === event.total;
    actions[event.kind]?.();
    numbers();
}

/** @param {{ epoch: number, wrong: number, values: number }} event */
function evaluated(event) {
    figure.say(event.wrong ? `${plural(event.wrong, "wrong cell")} of ${count(event.values)}.` : "Every cell is right.");
    progress.evaluation(event);
    look();
}

async function look() {
    const { trainer, preset } = page;
    if (!trainer || !preset || page.looking) return;
    page.looking = true;
    try {
        const converged = await trainer.converged(),
            { soft: states, epoch, circuit, start, ...shape } = await trainer.look();
        if (page.trainer !== trainer || page.state === "solved") return;
        progress.converged = converged;
        numbers();
        const show = () =>
            watch(circuit, { ...shape, initial: start }, (step) => paintState(soft, shape, states[Math.min(step, states.length - 1)]));
        if (figure.world && figure.world.steps < page.last) page.next = show;
        else show();
    } catch {
        // Training ends with the same error and reports it.
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
async function solved({ epoch, seed: solvedSeed }) {
    const { trainer, preset } = page,
        hard = await trainer?.circuit();
    if (!hard || !preset || page.trainer !== trainer) return;
    page.hard = hard;
    const { task } = preset.config,
        starts = count(3 * page.plans?.constants.STARTS);
    page.state = "solved";
    watch(hard, task, undefined, task.target !== "picture");
    const results = { rule: "Every neighbourhood is right.", checkerboard: `${starts} of ${starts} fresh initial states end in this image.` };
    const sentence = results[/** @type {keyof typeof results} */ (task.target)] ?? `Every cell is right after ${task.steps} steps.`;
    figure.say(`${sentence} ${plural(gatesOf(hard.rows), "gate")}.`);
    setText(element("solved-title"), `Solved at epoch ${count(epoch)} with seed ${solvedSeed}`);
    element("solved").hidden = false;
    enter("solved");
    say("Solved: every cell is right. Click the grid to damage it.");
}

/** @param {string} name @param {string} type @param {string | undefined} text */
const save = (name, type, text) => give(name, new Blob([text ?? ""], { type }));

// --- start

const listen = (/** @type {string} */ id, /** @type {() => unknown} */ action) => element(id).addEventListener("click", action);
listen("train", train);
listen("restart", () => restart(page.trainer?.state.seed ?? 0));
listen("reseed", () => restart(Math.floor(Math.random() * 1e6)));
listen("save-circuit", () => save("circuit.json", "application/json", page.hard?.json()));
listen("save-config", () => save("config.toml", "application/toml", page.hard?.config()));
listen("save-page", () =>
    save("automaton.html", "text/html", page.hard && page.preset ? livingPage(page.hard, page.preset.own ? page.name : titleOf(page.preset)[0]) : ""),
);
/** @type {HTMLElement} */ (figure.target.parentElement).append(cursor);
figure.part(".aim").append(tools, redraw);
figure.target.addEventListener("pointerdown", () => redraw.hidden || say(LEARNED));
document.addEventListener("paste", (event) => takeFile(event.clipboardData?.files[0] ?? null));
document.addEventListener("dragover", (event) => event.preventDefault());
document.addEventListener("drop", (event) => {
    if (!event.defaultPrevented) takeFile(event.dataTransfer?.files[0] ?? null);
    event.preventDefault(); // else the browser leaves the page for the file
});

// Without a graphics card, a checkerboard that was trained before plays.
/** @param {any} board */
function recorded(board) {
    const { height, width } = board.task,
        target = targetOf(board.task);
    element("tasks").hidden = element("bar").hidden = true;
    if (target) pad.use(cellsOf(target), height, width, false);
    figure.aim("Target");
    page.preset = null;
    page.noise = null;
    watch(HardCircuit.recorded(board), board.task, undefined, true);
    setText(element("notice"), "Until then, here is a checkerboard that was trained earlier.");
    element("notice").hidden = false;
    figure.say(`${board.text} ${plural(gatesOf(board.rows), "gate")}.`);
}

async function open() {
    say("Loading the presets and looking for a graphics card.");
    try {
        page.plans = await readPlans();
        page.device = await openDevice();
    } catch (error) {
        setTimeout(refuse, 0, error); // after `offer`, which clears messages
    }
    say("");
    if (page.plans) offer(page.plans);
    if (page.plans && !page.device) recorded(page.plans.recorded);
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
