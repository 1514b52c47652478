// Every field of a configuration as a control, made from what the server says about the fields.

import { h, freshId } from "./dom.js";
import { flat } from "./config-panel.js";

const OTHERS = ["data", "plugin"]; // sections that come with samples, which a form does not bring

// `about`: [{path, section, kind, about, limits, names}]; `changed()` is called after each edit.
// {element, reset(config), rebase({path: value}): what the fields are that nobody edited, values(): those that somebody
// did, mark(message): true where a field is to blame}
export function fieldEditor(about, changed) {
    const controls = new Map(),
        edited = new Set(),
        forAgents = about.some(({ path }) => path === "environment.id");
    const sections = [...new Set(about.map(({ path }) => sectionOf(path)))].filter((path) => !OTHERS.includes(path));
    const groups = new Map(sections.map((path) => [path, group(path, about.filter((each) => sectionOf(each.path) === path))]));
    const element = h("div", { class: "sections" }, ...groups.values());
    let base = {};

    function group(path, fields) {
        return h(
            "details",
            { class: "section", open: forAgents && ["", "environment"].includes(path) },
            h("summary", {}, path && `${path} `, h("span", { class: path ? "quiet" : "" }, fields[0].section)),
            h("div", { class: "grid-fields" }, fields.map(field)),
        );
    }

    function field(told) {
        const id = freshId("field"),
            hint = freshId("hint");
        const control = controlFor(told, id, hint);
        const undo = h(
            "button",
            {
                type: "button",
                class: "plain undo",
                hidden: true,
                "aria-label": `Undo the change of ${told.path}`,
                onclick: () => put(told.path),
            },
            "undo",
        );
        control.addEventListener("input", () => {
            edited.add(told.path);
            seen(told.path);
            choose();
            changed();
        });
        const box = h(
            "div",
            { class: "field" },
            h("div", { class: "label" }, h("label", { for: id }, told.path.split(".").at(-1)), undo),
            control,
            h("p", { id: hint, class: "hint" }, told.about, told.limits ? ` (${told.limits})` : ""),
        );
        controls.set(told.path, { told, control, undo, box });
        return box;
    }

    function put(path) {
        edited.delete(path);
        write(controls.get(path), base[path]);
        seen(path);
        changed();
    }

    function seen(path) {
        const { undo, control } = controls.get(path);
        undo.hidden = !edited.has(path);
        control.removeAttribute("aria-invalid");
    }

    function rebase(values) {
        base = values;
        for (const [path, each] of controls) if (!edited.has(path)) write(each, base[path]);
        choose();
    }

    // Of the sections that one field chooses between, the one that it names.
    function choose() {
        for (const name of ["algorithm", "policy"]) {
            const told = about.find(({ path }) => path === name);
            for (const each of told?.names ?? []) groups.get(each).hidden = controls.get(name).control.value !== each;
        }
    }

    return {
        element,
        rebase,
        reset(config) {
            edited.clear();
            rebase(flat(config));
            for (const path of controls.keys()) seen(path);
        },
        values: () => Object.fromEntries([...edited].map((path) => [path, read(controls.get(path))])),
        mark(message) {
            for (const [path, { control }] of controls) {
                const blamed = message.startsWith(`${path} `) || message.startsWith(`${path.split(".").at(-1)} must`);
                if (blamed && edited.has(path)) control.setAttribute("aria-invalid", "true");
                else control.removeAttribute("aria-invalid");
            }
        },
    };
}

const sectionOf = (path) => path.split(".").slice(0, -1).join(".");

function controlFor({ path, kind, names }, id, hint) {
    const common = { id, "aria-describedby": hint, name: `set.${path}` };
    if (names?.length)
        return h(
            "select",
            common,
            names.map((name) => h("option", { value: name }, name)),
        );
    if (kind === "boolean") return h("input", { ...common, type: "checkbox" });
    if (kind === "list")
        return h("textarea", { ...common, rows: path.includes("picture") ? 6 : 2, spellcheck: "false" });
    return h("input", {
        ...common,
        type: "text",
        spellcheck: "false",
        inputmode: { number: "decimal", integer: "numeric" }[kind],
    });
}

// The value that the server should have; what is no number goes as it is, so that the server says what it expected.
function read({ told: { kind, path }, control }) {
    if (kind === "boolean") return control.checked;
    if (kind === "text") return control.value;
    if (kind === "list" && control.value.trim().startsWith("[")) return rows(control.value);
    if (kind === "list")
        return control.value
            .split(path.includes("picture") ? /\s+/ : /[\s,]+/)
            .filter(Boolean)
            .map(plain);
    return plain(control.value.trim());

    // A list of lists, a row each: [0, 1], [2, 3].
    function rows(text) {
        try {
            return JSON.parse(`[${text}]`);
        } catch {
            return text;
        }
    }

    function plain(text) {
        if (path.includes("picture") || text === "") return text;
        return Number.isNaN(Number(text)) ? text : Number(text);
    }
}

function write({ told: { kind, path }, control }, value) {
    if (kind === "boolean") control.checked = value;
    else if (Array.isArray(value?.[0])) control.value = value.map((row) => JSON.stringify(row)).join(",\n");
    else if (Array.isArray(value)) control.value = value.join(path.includes("picture") ? "\n" : ", ");
    else control.value = value ?? "";
}
