const SPEEDS = [1, 2, 5, 10, 20, 60, 240, 1000];
const SIZES = [16, 24, 32, 48, 64, 96, 128, 256, 512];
const MOST_OPERATIONS = 5e7; // operations to find the image

const figure = new Figure(element("figure"));
const canvas = figure.now;

// The world of the figure.
const automaton = {
    height: 64,
    width: 64,
    state: new Uint32Array(0),
    steps: 0,
    until: Infinity, // the step at which playing pauses
    busy: Promise.resolve(), // the last step under way: one at a time
    engine: new ScriptEngine(),
    view: -1, // the channel shown large, -1 for the image
    past: [], // of a line: its states before, the latest last

    words: () => wordsOf(automaton.width),
    place: (y, x, c) => (y * circuit.channels + c) * automaton.words() + (x >> 5),
    get: (y, x, c, state = automaton.state) => (state[automaton.place(y, x, c)] >>> (x & 31)) & 1,
    isLine: () => circuit.neighbourhood === "line" && automaton.height === 1,
    set(y, x, c, value) {
        const bit = (1 << (x & 31)) >>> 0, place = automaton.place(y, x, c);
        automaton.state[place] = value ? automaton.state[place] | bit : automaton.state[place] & ~bit;
    },

    fires(count) {
        const size = automaton.height * automaton.words(), rate = element("rate").value / 100;
        if (element("update").value === "sync") return Array(count).fill(new Uint32Array(size).fill(0xffffffff));
        return Array.from({ length: count }, () => new Uint32Array(size).map(() => randomWord(rate)));
    },

    // Runs `change` after the steps under way, so that no painted cell is lost.
    then(change) {
        automaton.busy = automaton.busy.then(change).then(() => figure.draw(), failed);
        return automaton.busy;
    },

    advance(count) {
        return automaton.then(async () => {
            const { height, width } = automaton, stride = automaton.isLine() ? 1 : count;
            for (let done = 0; done < count; done += stride) {
                if (automaton.isLine()) automaton.past = [...automaton.past, automaton.state.slice()].slice(1 - layout().rows);
                automaton.state = await automaton.engine.advance(automaton.state, height, width, automaton.fires(stride));
            }
            automaton.steps += count;
        });
    },

    resize(height, width) {
        return automaton.then(() => {
            Object.assign(automaton, { height, width, steps: 0 });
            automaton.state = new Uint32Array(height * circuit.channels * wordsOf(width));
            beginAgain();
            Object.assign(figure.cursor, { y: height >> 1, x: width >> 1 });
            element("size").value = `${height},${width}`;
        });
    },

    again: () => automaton.then(beginAgain),
    damage: () => automaton.then(damageMiddle),
    touch: (y, x, buttons) => automaton.then(() => useBrush(y, x, buttons & 2 ? "damage" : element("brush").value)),
    paint() {
        paint(canvas, automaton.view);
        laboratory();
    },
    layout: () => layout(),

    // Every bit around one cell.
    inputs(y, x) {
        const patch = new Int32Array(9 * circuit.channels);
        neighbourhood(automaton.state, automaton.height, automaton.width, y, x >> 5, patch);
        return Array.from(patch, (word) => (word >>> (x & 31)) & 1);
    },

    async use(name) {
        if (name === "gpu") {
            automaton.engine = await GpuEngine.create();
            automaton.engine.device.lost.then((why) => say("The GPU was lost (" + why.message + "): JavaScript computes.", "js"));
        } else automaton.engine = new ScriptEngine();
        element("engine").value = name;
    },
};

function say(text, engine) {
    element("message").textContent = text;
    if (engine) automaton.use(engine);
}

function failed(error) {
    figure.pause();
    if (automaton.engine.name === "gpu") say("WebGPU failed (" + error.message + "): JavaScript computes.", "js");
    else throw error;
}

// --- the state

// Sets the initial state of the training in the middle of the grid; playing pauses at the step of the image.
function beginAgain() {
    const home = circuit.home;
    if (home === null || home.start === "random") return fillRandom();
    if (home.start === "seed") oneCell();
    else clear();
    const down = (automaton.height >> 1) - (home.height >> 1), right = (automaton.width >> 1) - (home.width >> 1);
    for (const [y, x, c] of home.ones) fillSquare(y + down, x + right, 1, 1, [c]);
    automaton.until = image.stays ? Infinity : home.steps;
}

// 32 random bits, each 1 with this probability.
function randomWord(probability) {
    let word = 0;
    for (let i = 0; i < 32; i++) word = (word << 1) | Number(Math.random() < probability);
    return word;
}

function fillRandom() {
    const last = lastWord(automaton.width), words = automaton.words();
    const state = automaton.state.map((_, i) => Math.floor(Math.random() * 2 ** 32) & (i % words === words - 1 ? last : 0xffffffff));
    Object.assign(automaton, { past: [], state, steps: 0, until: Infinity });
}

function clear() {
    Object.assign(automaton, { past: [], state: new Uint32Array(automaton.state.length), steps: 0, until: Infinity });
}

function oneCell() {
    clear();
    fillSquare(automaton.height >> 1, automaton.width >> 1, 1, 1);
}

// Sets channels, by default all, of the cells of a square around a cell, inside the grid.
function fillSquare(y, x, side, value, channels = circuit.origin.keys()) {
    const top = y - (side >> 1), left = x - (side >> 1);
    for (const c of channels)
        for (let v = Math.max(0, top); v < Math.min(automaton.height, top + side); v++)
            for (let u = Math.max(0, left); u < Math.min(automaton.width, left + side); u++) automaton.set(v, u, c, value);
}

function damageMiddle() {
    fillSquare(automaton.height >> 1, automaton.width >> 1, Math.max(2, Math.round(automaton.height * 0.3)), 0);
}

function useBrush(y, x, kind) {
    const side = Number(element("width").value), channel = element("channel").value;
    if (kind === "look") return;
    if (kind === "damage") return fillSquare(y, x, side, 0);
    fillSquare(y, x, side, kind === "paint", channel === "visible" ? Array(circuit.visible).keys() : [Number(channel)]);
}

// --- drawing

const thumbnails = [];
const MOST_WIDE = 1600; // pixels of a grid of hexagons

// The layout of cells on a canvas: {width, height} in pixels, `cells`, for each pixel its cell or -1, and `box(y, x)`, left,
// top, width and height of a cell. Squares are one pixel each. Hexagons are several pixels wide, and each row lies half a
// cell to the left of the one above. The rows of a line are its states, time downwards.
let cached = { key: "" };

function layout() {
    const { height, width } = automaton, key = `${height},${width}`;
    if (cached.key !== key) cached = { key, ...(circuit.neighbourhood === "hex" ? hexagons(height, width) : squares(height, width)) };
    return cached;
}

function squares(height, width) {
    const rows = automaton.isLine() ? Math.min(width, 256) : height;
    const now = (y) => (automaton.isLine() ? automaton.past.length : y);
    return { rows, width, height: rows, cells: Int32Array.from({ length: rows * width }, (_, i) => i), box: (y, x) => [x, now(y), 1, 1] };
}

function hexagons(height, width) {
    const side = Math.max(4, Math.min(12, Math.floor(MOST_WIDE / (width + height / 2)))), down = (side * Math.sqrt(3)) / 2, radius = side / Math.sqrt(3);
    const left = (y, x) => ((height - 1 - y) / 2 + x) * side;
    const size = { width: Math.ceil((width + (height - 1) / 2) * side), height: Math.ceil((height - 1) * down + 2 * radius) };
    const cells = new Int32Array(size.width * size.height);
    for (let v = 0; v < size.height; v++)
        for (let u = 0; u < size.width; u++) {
            // The cell whose centre is nearest, in one of the two rows between which the pixel lies.
            const above = Math.floor((v + 0.5 - radius) / down);
            const [, y, x] = [above, above + 1]
                .map((y) => {
                    const x = Math.round((u + 0.5 - left(y, 0.5)) / side);
                    return [Math.hypot(u + 0.5 - left(y, x + 0.5), v + 0.5 - radius - y * down), y, x];
                })
                .reduce((one, other) => (other[0] < one[0] ? other : one));
            cells[v * size.width + u] = y >= 0 && x >= 0 && y < height && x < width ? y * width + x : -1;
        }
    return { rows: height, ...size, cells, box: (y, x) => [left(y, x), y * down, side, 2 * radius] };
}

function colour(y, x, view, state) {
    const get = (c) => automaton.get(y, x, c, state);
    if (view >= 0) return get(view) ? 0xffffffff : 0xff2a2015;
    if (circuit.colours?.length) {
        let number = 0;
        for (let c = 0; c < circuit.visible; c++) number |= get(c) << c;
        const [red, green, blue] = circuit.colours[number];
        return 0xff000000 | (blue << 16) | (green << 8) | red;
    }
    if (circuit.visible === 3) return 0xff000000 | (get(0) * 0xff) | (get(1) * 0xff00) | (get(2) * 0xff0000);
    let sum = 0;
    for (let c = 0; c < circuit.visible; c++) sum += get(c);
    const share = sum / circuit.visible;
    const mix = (dark) => Math.round(dark + (255 - dark) * share);
    return 0xff000000 | (mix(0x2a) << 16) | (mix(0x20) << 8) | mix(0x15);
}

// The colours of all cells of a state.
function coloursOf(state, view) {
    const colours = [];
    for (let y = 0; y < automaton.height; y++) for (let x = 0; x < automaton.width; x++) colours.push(colour(y, x, view, state));
    return colours;
}

function paint(target, view) {
    const states = automaton.isLine() ? [...automaton.past, automaton.state] : [automaton.state];
    paintColours(target, states.flatMap((state) => coloursOf(state, view)));
}

function paintColours(target, colours) {
    const { width, height, cells } = layout();
    if (target.width !== width || target.height !== height) {
        Object.assign(target, { width, height });
        target.style.aspectRatio = `${width} / ${height}`;
    }
    const data = new ImageData(width, height), pixels = new Uint32Array(data.data.buffer);
    cells.forEach((cell, i) => (pixels[i] = colours[cell] ?? 0));
    target.getContext("2d").putImageData(data, 0, 0);
}

// Updates the laboratory while it is open.
function laboratory() {
    if (!element("laboratory").open) return;
    thumbnails.forEach(([target, view]) => paint(target, view));
    let ones = 0;
    for (let y = 0; y < automaton.height; y++) for (let x = 0; x < automaton.width; x++) ones += automaton.get(y, x, Math.max(0, automaton.view));
    const shown = circuit.channels === 1 ? "" : ` in channel ${circuit.origin[Math.max(0, automaton.view)]}`;
    element("ones").textContent = `${ones} of ${automaton.height * automaton.width} cells are 1${shown}`;
}

element("laboratory").addEventListener("toggle", laboratory);

// --- controls

const ACTIONS = { random: fillRandom, one: oneCell, clear };
for (const [id, action] of Object.entries(ACTIONS)) element(id).addEventListener("click", () => automaton.then(action));
listenToKeys({ " ": "play", s: "step", b: "again", r: "random", o: "one", c: "clear", d: "damage" });

if (circuit.neighbourhood === "line") automaton.height = 1;
const sizes = SIZES.map((side) => [circuit.neighbourhood === "line" ? 1 : side, side]);
if (circuit.home !== null) atHome(circuit.home);
for (const [height, width] of sizes) {
    const chosen = height === automaton.height && width === automaton.width;
    element("size").add(new Option(`${width} × ${height}`, `${height},${width}`, chosen, chosen));
}
element("size").addEventListener("change", (event) => automaton.resize(...event.target.value.split(",").map(Number)));

// Sets size and chance as in the training.
function atHome(home) {
    if (!sizes.some(([height, width]) => height === home.height && width === home.width)) {
        sizes.push([home.height, home.width]);
        sizes.sort((one, other) => one[0] * one[1] - other[0] * other[1]);
    }
    if (home.fire_rate < 1) Object.assign(element("rate"), { value: Math.round(100 * home.fire_rate) });
    element("update").value = home.fire_rate < 1 ? "async" : "sync";
    Object.assign(automaton, { height: home.height, width: home.width });
}

async function compute(name) {
    try {
        await automaton.busy;
        await automaton.use(name);
        element("message").textContent = "";
    } catch (error) {
        say("WebGPU cannot be used (" + error.message + "): JavaScript computes.", "js");
    }
}

element("engine").addEventListener("change", (event) => compute(event.target.value));

const TEXTS = {
    speed: (value) => `${SPEEDS[value]} ${value > 0 ? "steps" : "step"} a second`,
    width: (value) => `${value} × ${value}`,
    rate: (value) => `${value} %`,
};
showRanges(TEXTS, figure, SPEEDS);
const showRate = () => (element("rate").disabled = element("update").value === "sync");
element("update").addEventListener("change", showRate);
showRate();

// --- channels: each small, one large

function addView(name, view) {
    const button = document.createElement("button"), small = document.createElement("canvas");
    button.type = "button";
    button.append(small, name);
    button.setAttribute("aria-label", `Show ${name}`);
    button.setAttribute("aria-pressed", String(view === automaton.view));
    button.addEventListener("click", () => {
        automaton.view = view;
        for (const other of element("channels").children) other.setAttribute("aria-pressed", String(other === button));
        figure.draw();
    });
    thumbnails.push([small, view]);
    element("channels").append(button);
}

element("channel").add(new Option(circuit.visible > 1 ? "all visible channels" : "the visible channel", "visible"));
circuit.origin.forEach((name, c) => element("channel").add(new Option(`${name}${c < circuit.visible ? ", visible" : ""}`, c)));
if (circuit.channels > 1) {
    addView("image", -1);
    circuit.origin.forEach((name, c) => addView(`channel ${name}`, c));
}

// --- begin

const BEGINNINGS = { seed: "that grows from one cell", zeros: "that grows from nothing", picture: "that grows from another", random: "that grows from noise" };

// The state after the steps of the training, found by running: its colours, and whether they stay for as many steps more.
// From noise it is an image only if two initial states end in the same.
const image = { colours: [], stays: false };

async function findImage() {
    const { home, gates } = circuit;
    if (home === null || circuit.neighbourhood === "line" || home.steps * home.height * wordsOf(home.width) * gates > MOST_OPERATIONS) return;
    const seen = [];
    for (let start = 0; start < (home.start === "random" ? 2 : 1); start++) {
        await automaton.resize(home.height, home.width);
        await automaton.advance(home.steps);
        if (start === 0) image.colours = coloursOf(automaton.state, -1);
        for (let after = 0; after < home.steps; after++) {
            seen.push(coloursOf(automaton.state, -1).join());
            await automaton.advance(1);
        }
    }
    image.stays = seen.every((colours) => colours === seen[0]);
    if (home.start === "random" && !image.stays) image.colours = [];
}

// JavaScript computes until the shader is compiled.
async function begin() {
    await findImage();
    const { colours } = image, isRule = circuit.home?.start === "random" && !colours.length;
    // A rule was trained on boards that are too small to watch.
    if (isRule) Object.assign(automaton, { height: circuit.neighbourhood === "line" ? 1 : 64, width: 64 });
    await automaton.resize(automaton.height, automaton.width);
    figure.use(automaton);
    figure.show(circuit.lines && { ...circuit, rows: circuit.lines });
    if (colours.length) {
        figure.aim(`Target, after ${circuit.home.steps} steps`);
        paintColours(figure.target, colours);
    }
    const what = colours.length ? `An image ${BEGINNINGS[circuit.home.start]}.` : "A cellular automaton.";
    figure.say(`${what} Every cell follows the same ${circuit.gates} gate${circuit.gates === 1 ? "" : "s"}. Click to damage it.`);
    new ResizeObserver(() => parent.postMessage({ difflogic: "height", height: document.body.offsetHeight }, "*")).observe(document.body);
    if (!matchMedia("(prefers-reduced-motion: reduce)").matches) figure.play();
    await compute("gpu");
    element("engine").options[0].disabled = automaton.engine.name !== "gpu";
}
const ready = begin();
