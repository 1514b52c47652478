// The options of a request, each as a control that is made from what the server says about it.

import { freshId, h } from "./dom.js";
import { tagsOf } from "./tags.js";

// `about`: what GET /fields?of=request says; `values`: a request that this is a copy of; `choices`: {path: [[value,
// words], ...]} of options whose values only the page knows.
// {element, wishes(): fields of a request, suggest({name, recipes, forAgents})}
export function requestFields(about, values, choices) {
    const shown = about.filter(({ section, path }) => section !== "target" && (section !== "what" || path === "recipe"));
    const controls = new Map(shown.map((told) => [told.path, control(told)]));
    const groups = Map.groupBy(shown, ({ path, section }) => (path === "recipe" ? "run" : section));
    const element = h(
        "div",
        { oninput: exclude, onchange: exclude },
        [...groups].map(([name, fields]) =>
            h(
                "fieldset",
                {},
                h("legend", {}, titled(name)),
                h("div", { class: "grid-fields" }, fields.map(({ path }) => controls.get(path).box)),
            ),
        ),
    );
    let forAgents = false;
    for (const [path, each] of controls) write(each, at(values, path));
    exclude();

    function control(told) {
        const id = freshId("option"),
            hint = freshId("hint"),
            name = told.path.split(".").at(-1);
        const common = { id, name, "aria-describedby": hint, placeholder: told.usual, autocomplete: "off" };
        const offered = choices[told.path] ?? told.names.map((value) => [value, value]);
        let input;
        if (told.kind === "boolean") input = h("input", { ...common, type: "checkbox" });
        else if (told.kind === "table") input = h("textarea", { ...common, rows: 3, spellcheck: "false" });
        else if (offered.length) input = selectOf(common, told, offered);
        else input = h("input", { ...common, inputmode: { integer: "numeric", number: "decimal" }[told.kind] });
        const box = h(
            "div",
            { class: "field" },
            h("label", { for: id }, titled(name)),
            input,
            h("p", { id: hint, class: "hint" }, told.about),
        );
        return { told, input, box };
    }

    // What cannot go together is not offered together; what is off is not sent either.
    function exclude() {
        for (const { input, box, told } of controls.values()) {
            box.hidden = forAgents && !told.of_agents;
            input.disabled = box.hidden || Boolean(told.needs && !isSet(told.needs));
        }
        for (const { told } of controls.values())
            for (const other of told.excludes.filter((name) => controls.has(name))) {
                if (isSet(told.path)) controls.get(other).input.disabled = true;
                else if (isSet(other)) controls.get(told.path).input.disabled = true;
            }
    }

    function isSet(path) {
        const { told, input } = controls.get(path);
        return !input.disabled && read({ told, input }) !== undefined && read({ told, input }) !== 0;
    }

    return {
        element,
        wishes() {
            const wishes = {};
            for (const [path, each] of controls) {
                const value = each.input.disabled ? undefined : read(each);
                if (value === undefined) continue;
                const [table, name] = path.includes(".") ? path.split(".") : [null, path];
                if (table) wishes[table] = { ...wishes[table], [name]: value };
                else wishes[name] = value;
            }
            // Without fields to vary there is no sweep, whatever else is said of one.
            if (!wishes.sweep?.over) delete wishes.sweep;
            return wishes;
        },
        suggest({ name, recipes, forAgents: agents }) {
            forAgents = agents;
            controls.get("name").input.placeholder = name;
            const { input, told } = controls.get("recipe");
            const before = input.value;
            input.replaceChildren(...selectOf({}, told, recipes.map((value) => [value, value])).children);
            input.value = recipes.includes(before) ? before : "";
            exclude();
        },
    };
}

const titled = (name) => (name[0].toUpperCase() + name.slice(1)).replaceAll("_", " ");

const at = (values, path) => path.split(".").reduce((inside, name) => inside?.[name], values);

function selectOf(common, { usual }, offered) {
    const first = h("option", { value: "" }, usual ?? "none");
    return h("select", common, first, offered.map(([value, words]) => h("option", { value }, words)));
}

// The value that the server should have, undefined where nothing is said; what is no number goes as it is, so that the
// server says what it expected.
function read({ told: { kind }, input }) {
    if (kind === "boolean") return input.checked || undefined;
    const text = input.value.trim();
    if (!text) return undefined;
    if (kind === "list") return tagsOf(text);
    if (kind === "table") return tableOf(text);
    return ["integer", "number"].includes(kind) && !Number.isNaN(Number(text)) ? Number(text) : text;
}

function write({ told: { kind }, input }, value) {
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
