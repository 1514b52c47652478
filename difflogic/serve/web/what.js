// The first question, what to learn: an image, a rule, a recording or samples, a table, a task, or the task of a copied job.

import { open as download } from "./api.js";
import { h } from "./dom.js";
import { dropZone } from "./drop-zone.js";
import { generations, tableOf } from "./growth.js";
import { Pad, cellsOf } from "./pad.js";
import { targetOf } from "./pixels.js";
import { presetCards } from "./preset-cards.js";
import { isPolicy, isTable } from "./progress.js";

const IMAGES = {
    "checkerboard-small": ["Board", "from noise"],
    "checkerboard-healing": ["Healing board", "after damage"],
    "checkerboard-async": ["Asynchronous board", "random updates"],
    lizard: ["Lizard", "from one cell"],
    "colored-g": ["Letter", "in colours"],
    "heart-steady": ["Heart", "that stays"],
};
const RULE = "game-of-life",
    OWN = "colored-g"; // grows an image in eight colours from an empty grid
const TABLES = ".txt,.npy",
    RECORDINGS = ".gif,.npy,.npz,.rle,.cells,.lif,.mc",
    ANY = null; // IDX files have no ending
const TABLE = { name: "classifier", config: { kind: "classifier" } }; // its configuration comes with its rows
const LARGEST = 128, // cells of an image per side
    USUAL = 32, // of a larger image after scaling
    SIDE = 12, // of a drawing
    SIZES = [8, 12, 16, 24, 32];
const RULES = { Life: "B3/S23", HighLife: "B36/S23", "Day & Night": "B3678/S34678", Maze: "B3/S12345", "Rule 30": "30", "Rule 110": "110" };

// Twenty frames of a rule from noise, as NumPy writes them.
function exampleRecording() {
    const side = 16,
        states = generations(tableOf(RULES.HighLife), Uint8Array.from({ length: side ** 2 }, () => Number(Math.random() < 0.4)), side, 19);
    const about = `{'descr': '|u1', 'fortran_order': False, 'shape': (${states.length}, ${side}, ${side}), }`.padEnd(117) + "\n";
    return new File([Uint8Array.of(0x93), "NUMPY", Uint8Array.of(1, 0, 118, 0), about, ...states], "highlife.npy");
}

// A file's name without its ending.
const stem = (file) => (file ? file.name.replace(/\.[^.]*$/, "").slice(0, 100) : "");

// `offers`: presets, and as `copy` one of another kind; `rule`, `label`, `invert`: controls of a request; the `sheet` of the
// preview is drawn on, next to the palette; `changed()` is called after each change, `chosen(offer)` at another offer; `write`
// sets an option.
export function whatToLearn(offers, copy, { rule, label, invert }, { element: aside, sheet, canvas, cursor }, { changed, chosen, write }) {
    const of = (name) => offers.find((offer) => offer.name === name);
    const images = Object.entries(IMAGES).filter(([name]) => of(name)).map(([name, [title, about]]) => ({ ...of(name), title, about }));
    const own = { name: "own", title: "Your own", about: "draw or drop it", mark: "draw" };
    const tasks = offers.filter(({ config }) => isPolicy(config) || config.task.target === "data");
    const pad = new Pad(canvas, cursor, drawn, inverted);
    const buttons = (name, words, act) => h("div", { class: "buttons", role: "group", "aria-label": name }, Object.entries(words).map(([text, value]) => h("button", { type: "button", class: "chip", onclick: () => act(value) }, text)));
    const zone = dropZone("Drop an image here", () => fitted(zone.file())),
        table = dropZone("Or drop its table: 512 digits 0 and 1, 128 hexadecimal ones, or .npy", changed, TABLES),
        recording = dropZone("Drop a recording or samples here", changed, RECORDINGS),
        rows = dropZone("Drop a table here: .csv, .npz, or images in IDX", columns, ANY),
        labels = dropZone("The labels of these images", changed, ANY),
        begin = dropZone("Or drop an image as the initial state", changed);
    const sizes = buttons("Size", Object.fromEntries(SIZES.map((side) => [`${side}×${side}`, side])), resize);
    const ofOwn = h("div", { class: "own", hidden: true }, h("div", { class: "stacked" }, sizes, pad.tools, zone.element));
    const cardsOfImages = h("div", { class: "stacked" }, presetCards([...images, own], takeImage, "One of these, or your own"), ofOwn);
    const try_ = (text) => {
        write("rule", text);
        changed();
    };
    const ofRule = h("div", { class: "stacked" }, buttons("Rules to try", RULES, try_), rule.box, table.element);
    const example = h("button", { type: "button", class: "chip", onclick: () => recording.take(exampleRecording()) }, "Try one: 20 frames of HighLife");
    const cards = presetCards(tasks, choose, "A task, usually for an agent", "task");
    const parts = {
        picture: ["An image", cardsOfImages, () => takeImage(offerIn(cardsOfImages, [...images, own]))],
        rule: ["A rule", ofRule, () => choose(of(RULE))],
        film: ["A recording", h("div", { class: "stacked film" }, h("div", { class: "buttons" }, example), recording.element, h("p", { class: "quiet" }, "A recording (.gif or .npy) or a pattern with its rule (RLE): the rule is learned. Samples (.npz): inputs x, and outputs y.")), () => choose(of(RULE))],
        table: ["A table", h("div", { class: "stacked" }, rows.element, labels.element, label.box), () => choose(TABLE)],
        task: ["A task", cards, () => choose(offerIn(cards, tasks))],
        ...(copy && { copy: ["As the copied job", h("p", { class: "quiet" }, `The settings of ${copy.name}. Change what you like under More.`), () => choose(copy)] }),
    };
    const names = Object.keys(parts).filter((name) => name !== "task" || tasks.length);
    labels.element.hidden = true;
    const tabs = h("div", { class: "choices", role: "radiogroup", "aria-label": "What should it learn?" }, names.map(tab));
    const element = h("section", { class: "question", "aria-labelledby": "what-title" }, h("h2", { id: "what-title" }, "What should it learn?"), tabs, names.map((name) => parts[name][1]));
    let offer = null,
        isDrawn = false,
        isInverted = false;

    function tab(name, place) {
        const input = h("input", { type: "radio", name: "kind", value: name, checked: copy ? name === "copy" : place === 0, onchange: () => open(name) });
        return h("label", { class: "choice" }, input, h("span", {}, parts[name][0]));
    }

    // A row of names lists the possible labels: the last is the default.
    async function columns() {
        const file = rows.file();
        const start = file ? await file.slice(0, 1 << 16).text() : "";
        const isImages = start.startsWith("\0\0"),
            names = /^[^\0]*\n/.test(start) ? start.split(/\r?\n/)[0].split(/[,;\t]/).map((name) => name.replace(/^"|"$/g, "").trim()) : [];
        labels.element.hidden = !isImages;
        if (file) write("label", names.at(-1) || "label");
        changed();
    }

    const kind = () => tabs.querySelector(":checked").value;

    const offerIn = (element, all) => all.find(({ name }) => name === element.querySelector(".preset :checked")?.value) ?? all[0];

    function open(name) {
        for (const other of names) parts[other][1].hidden = other !== name;
        parts[name][2]();
    }

    function choose(other) {
        offer = other;
        isDrawn = false;
        (isOwn() ? ofOwn : aside).prepend(sheet);
        chosen(offer);
    }

    function takeImage(image) {
        ofOwn.hidden = image !== own;
        choose(image === own ? of(OWN) : image);
        if (image !== own || zone.file()) return;
        const heart = targetOf(of("heart-steady").config.task);
        pad.use(cellsOf(heart).map((cell) => cell && 1), heart.height, heart.width, true);
        pad.resize(SIDE);
    }

    // A file is read again in another size or inverted; a drawing itself is changed.
    const isRead = () => Boolean(zone.file()) && !isDrawn;

    function resize(side) {
        if (!isRead()) return pad.resize(side);
        write("size", `${side}x${side}`);
        changed();
    }

    function inverted() {
        if (!isRead()) return false;
        write("invert", !isInverted);
        changed();
        return true;
    }

    const isOwn = () => kind() === "picture" && !ofOwn.hidden;

    function drawn() {
        isDrawn = true;
        changed();
    }

    // The data file, which no configuration contains.
    async function samples() {
        if (offer === copy && (isTable(copy.config) || (copy.config.data?.sha256 && !copy.config.plugin.name))) return (await download(`/jobs/${copy.id}/files/data.npz`)).blob();
        const [zone, words] = { film: [recording, "Drop a recording or samples first."], table: [rows, "Drop a table first."] }[kind()] ?? [];
        if (!zone) return null;
        canvas.hidden = true;
        if (!zone.file()) throw Object.assign(new Error(words), { isAwaited: true });
        return zone.file();
    }

    // A photograph has more pixels than a grid has cells: it is scaled down to a size that can be changed.
    async function fitted(file) {
        if (file) {
            const { width, height } = await createImageBitmap(file).catch(() => ({ width: 0, height: 0 }));
            if (Math.max(width, height) > LARGEST) write("size", `${USUAL}x${USUAL}`);
            isDrawn = false;
        } else if (isOwn()) return takeImage(own);
        changed();
    }

    return {
        element,
        begin: begin.element,
        open: () => open(kind()),
        // Selects an offer by name, also one without a card.
        choose(name) {
            const preset = of(name);
            const card = preset && element.querySelector(`.preset [value="${name}"]`);
            if (!card) return preset && choose(preset);
            card.checked = true;
            const there = isPolicy(preset.config) ? "task" : "picture";
            tabs.querySelector(`[value=${there}]`).checked = true;
            open(there);
        },
        isOwn,
        // Takes the image as the server reads it, to be drawn on.
        sees({ rgb, width, height }, notices) {
            if (isDrawn) return;
            isInverted = invert.input.value === "true" || notices.some((text) => text.includes("is inverted"));
            pad.use(Uint8Array.from(rgb.flat(), ([red, green, blue]) => Number(red > 127) + 2 * Number(green > 127) + 4 * Number(blue > 127)), height, width, true);
        },
        invert: () => pad.invert(),
        leave: () => pad.use(new Uint8Array(), 1, 1, false),
        wishes() {
            const wishes = offer === copy ? { config: offer.config } : { preset: ["film", "table"].includes(kind()) ? undefined : offer.name };
            if (kind() !== "rule") wishes.rule = undefined;
            if (kind() !== "table") wishes.label = undefined;
            if (begin.file()) wishes.start = undefined; // the file sets it
            // A job with a custom file has its name.
            const file = { film: recording, table: rows }[kind()]?.file() ?? (isOwn() && !isDrawn && zone.file());
            if (isOwn() || file) wishes.name = stem(file) || "my image";
            return wishes;
        },
        async files() {
            if (isOwn() && isDrawn && !pad.cells.some(Boolean)) throw Object.assign(new Error("Draw something first."), { isAwaited: true });
            const image = isOwn() && (isDrawn ? new File([await pad.png()], "drawing.png", { type: "image/png" }) : zone.file());
            const files = { target: image, start_picture: begin.file(), rule_table: kind() === "rule" && table.file(), data: await samples(), labels: kind() === "table" && labels.file() };
            return isPolicy(offer.config) && !isTable(offer.config) ? [] : Object.entries(files).filter(([, file]) => file);
        },
        // Takes an image file, such as a pasted one, as the target.
        take(file) {
            tabs.querySelector("[value=picture]").checked = true;
            cardsOfImages.querySelector("[value=own]").checked = true;
            zone.take(file);
            open("picture");
        },
    };
}
