// Another target or start than the preset's: pictures, dragged in, or a rule.

import { h } from "./dom.js";
import { dropZone } from "./drop-zone.js";
import { numberField, numberOf, selectField, textField, textOf } from "./inputs.js";

const AIMS = { preset: "The preset's", picture: "A picture", rule: "A rule" };
const TABLES = ".txt,.npy";
export const COLOURS = [
    ["", "as the preset's"],
    [2, "2"],
    [8, "8"],
    [64, "64"],
];
export const STARTS = [
    ["", "as the preset"],
    ["random", "random bits"],
    ["seed", "one cell"],
    ["zeros", "nothing: all cells off"],
    ["boards", "all boards"],
    ["picture", "a picture"],
];

// {element, wishes(): fields of a request, files(): {target, start_picture, rule_table}, take(file)}
export function targetFields(changed) {
    const target = dropZone("Drop the target here", changed),
        start = dropZone("Drop the start here", changed),
        table = dropZone("Or drop a rule's table: 512 digits 0 and 1, 128 hexadecimal ones, or .npy", changed, TABLES);
    const rule = textField("rule", "Rule", { placeholder: "B3/S23" });
    const ofRule = h("div", { class: "stacked", hidden: true }, rule, table.element);
    const ofTarget = h("div", { hidden: true }, target.element);
    const ofStart = h("div", { hidden: true }, start.element);
    const ofPictures = h(
        "div",
        { class: "grid-fields", hidden: true },
        textField("size", "Fit into (width x height)", { placeholder: "24x24" }),
        selectField("colors", "Colours", COLOURS),
        numberField("threshold", "Threshold", "0.26"),
        numberField("padding", "Padding", "0"),
    );
    const aims = h(
        "div",
        { class: "choices", role: "radiogroup", "aria-label": "Target" },
        Object.keys(AIMS).map(choice),
    );
    const element = h(
        "fieldset",
        { onchange: show },
        h("legend", {}, "Target"),
        aims,
        ofTarget,
        ofRule,
        selectField("start", "Start from", STARTS),
        ofStart,
        ofPictures,
    );

    function choice(value) {
        const input = h("input", { type: "radio", name: "aim", value, checked: value === "preset" });
        return h("label", { class: "choice" }, input, h("span", {}, AIMS[value]));
    }

    const aim = () => aims.querySelector(":checked").value;
    const begins = () => textOf(element, "start");

    function show() {
        ofTarget.hidden = aim() !== "picture";
        ofRule.hidden = aim() !== "rule";
        ofStart.hidden = begins() !== "picture";
        ofPictures.hidden = ofTarget.hidden && ofStart.hidden;
    }

    return {
        element,
        wishes() {
            const wishes = { start: begins() };
            if (aim() === "rule") wishes.rule = textOf(element, "rule");
            if (ofPictures.hidden) return wishes;
            if (wishes.start === "picture") delete wishes.start; // the file says it
            wishes.size = textOf(element, "size");
            for (const name of ["colors", "threshold", "padding"]) wishes[name] = numberOf(element, name);
            return wishes;
        },
        files() {
            const files = {
                target: aim() === "picture" && target.file(),
                start_picture: begins() === "picture" && start.file(),
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
