// An option of a request as a control, made from what the server says about it.

import { freshId, h } from "./dom.js";
import { tagsOf } from "./tags.js";

// `told`: an option as GET /fields?of=request says it; `choices`: [[value, words], ...] where only the page knows them.
// {told, input, box, read(), write(value)}
export function optionOf(told, choices) {
    const id = freshId("option"),
        hint = freshId("hint"),
        name = told.path.split(".").at(-1);
    const common = { id, name, "aria-describedby": hint, placeholder: told.usual, autocomplete: "off" };
    const offered = choices ?? told.names.map((value) => [value, value]);
    let input;
    if (told.kind === "boolean") input = h("input", { ...common, type: "checkbox" });
    else if (told.kind === "table") input = h("textarea", { ...common, rows: 3, spellcheck: "false" });
    else if (choices || offered.length) input = h("select", common, optionsOf(told, offered));
    else input = h("input", { ...common, inputmode: { integer: "numeric", number: "decimal" }[told.kind] });
    const label = h("label", { for: id }, titled(name)),
        words = h("p", { id: hint, class: "hint" }, told.about);
    const box = h("div", { class: "field" }, label, input, words);
    return { told, input, box, read: () => read(told.kind, input), write: (value) => write(told.kind, input, value) };
}

// Those of a select, the first for what holds where nothing is said.
export const optionsOf = ({ usual }, offered) =>
    [["", usual ?? "none"], ...offered].map(([value, words]) => h("option", { value }, words));

export const titled = (name) => (name[0].toUpperCase() + name.slice(1)).replaceAll("_", " ");

// The value that the server should have, undefined where nothing is said; what is no number goes as it is, so that the
// server says what it expected.
function read(kind, input) {
    if (kind === "boolean") return input.checked || undefined;
    const text = input.value.trim();
    if (!text) return undefined;
    if (kind === "list") return tagsOf(text);
    if (kind === "table") return tableOf(text);
    return ["integer", "number"].includes(kind) && !Number.isNaN(Number(text)) ? Number(text) : text;
}

function write(kind, input, value) {
    if (kind === "boolean") input.checked = Boolean(value);
    else if (kind === "list") input.value = value?.join(", ") ?? "";
    else if (kind === "table") input.value = Object.entries(value ?? {}).map(lineOf).join("\n");
    else input.value = value ?? "";
}

const lineOf = ([path, values]) =>
    `${path}=${Array.isArray(values) ? values.map((each) => JSON.stringify(each)).join(",") : values}`;

// A line for each field: optimizer.lr=0.02:0.2:log
function tableOf(text) {
    const lines = text.split("\n").map((line) => line.trim()).filter(Boolean);
    return Object.fromEntries(lines.map((line) => line.split(/=(.*)/s)).map(([path, values = ""]) => [path.trim(), values]));
}
