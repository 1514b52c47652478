// Another target or start than the preset's: pictures, dragged in, or a rule.

import { h } from "./dom.js";
import { dropZone } from "./drop-zone.js";
import { optionOf } from "./option.js";

const AIMS = { preset: "The preset's", picture: "A picture", rule: "A rule" };
const TABLES = ".txt,.npy";
const LARGEST = 128, // cells of a picture a side, at most
    USUAL = 32; // and where a larger one comes

// `about`: what GET /fields?of=request says.
// `aimed()` hears that the target is a picture.
// {element, wishes(): fields of a request, files(): {target, start_picture, rule_table}, take(file)}
export function targetFields(about, changed, aimed) {
    const controls = Object.fromEntries(
        about.filter(({ section }) => section === "target").map((told) => [told.path, optionOf(told)]),
    );
    const { rule, start, ...ofPicture } = controls;
    start.input.append(h("option", { value: "picture" }, "a picture"));
    const target = dropZone("Drop the target here", () => fitted(target.file())),
        begin = dropZone("Drop the start here", () => fitted(begin.file())),
        table = dropZone("Or drop a rule's table: 512 digits 0 and 1, 128 hexadecimal ones, or .npy", changed, TABLES);
    const ofRule = h("div", { class: "stacked", hidden: true }, rule.box, table.element);
    const ofTarget = h("div", { hidden: true }, target.element);
    const ofStart = h("div", { hidden: true }, begin.element);
    const ofPictures = h("div", { class: "grid-fields", hidden: true }, Object.values(ofPicture).map(({ box }) => box));
    const aims = h(
        "div",
        { class: "choices", role: "radiogroup", "aria-label": "Target" },
        Object.keys(AIMS).map(choice),
    );
    const element = h("fieldset", { onchange: show }, h("legend", {}, "Target"), aims, ofTarget, ofRule, start.box, ofStart, ofPictures);

    function choice(value) {
        const input = h("input", { type: "radio", name: "aim", value, checked: value === "preset" });
        return h("label", { class: "choice" }, input, h("span", {}, AIMS[value]));
    }

    const aim = () => aims.querySelector(":checked").value;

    // A photograph has more pixels than a grid has cells: it is scaled down, by a size that can be changed.
    async function fitted(file) {
        if (file && !ofPicture.size.read()) {
            const { width, height } = await createImageBitmap(file).catch(() => ({ width: 0, height: 0 }));
            if (Math.max(width, height) > LARGEST) ofPicture.size.write(`${USUAL}x${USUAL}`);
        }
        changed();
    }

    function show() {
        ofTarget.hidden = aim() !== "picture";
        ofRule.hidden = aim() !== "rule";
        ofStart.hidden = start.read() !== "picture";
        ofPictures.hidden = ofTarget.hidden && ofStart.hidden;
        if (!ofTarget.hidden) aimed();
    }

    return {
        element,
        wishes() {
            const wishes = {};
            if (start.read() !== "picture") wishes.start = start.read(); // else the file says it
            if (aim() === "rule") wishes.rule = rule.read();
            // A job about one's own picture is called like its file.
            if (aim() === "picture" && target.file()) wishes.name = target.file().name.replace(/\.[^.]*$/, "").slice(0, 100) || undefined;
            if (!ofPictures.hidden) for (const [name, { read }] of Object.entries(ofPicture)) wishes[name] = read();
            return wishes;
        },
        files() {
            const files = {
                target: aim() === "picture" && target.file(),
                start_picture: start.read() === "picture" && begin.file(),
                rule_table: aim() === "rule" && table.file(),
            };
            return Object.entries(files).filter(([, file]) => file);
        },
        // A picture from elsewhere, as the target.
        take(file) {
            aims.querySelector("[value=picture]").checked = true;
            show();
            target.take(file);
        },
    };
}
