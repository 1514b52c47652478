// All other settings of a job: options of the request and fields of the configuration, each a control built from the
// server's description, in groups with a search.

import { flat } from "./config-panel.js";
import { tagsOf } from "./dialogs.js";
import { freshId, h, setText } from "./dom.js";
import { isTable } from "./progress.js";

const OTHERS = ["data", "plugin", "table"]; // sections that come with a data file
const GROUPS = {
    what: "Training",
    target: "Image and initial state",
    run: "Device and initial circuit",
    until: "When to stop",
    sweep: "Sweep: several runs with different settings",
    queue: "Name and place in the queue",
};

// `request`, `automata`, `agents`: answers of GET /fields; `choices`: {path: [[value, words], ...]} for options whose values
// depend on the page; `more`: {group: elements}; `taken`: options shown elsewhere; `changed()` is called after an edit.
export function moreFields({ request, automata, agents }, choices, more, taken, changed) {
    const options = new Map(request.map((field) => [field.path, control(field, false, choices[field.path])]));
    const documents = [automata, agents].map((fields) => {
        const shown = fields.filter(({ path }) => !OTHERS.includes(sectionOf(path)));
        return new Map(shown.map((field) => [field.path, control(field, true)]));
    });
    const groups = [
        ...[...Map.groupBy([...options.values()].filter(({ field }) => !taken.includes(field.path)), ({ field }) => field.section)].map(([name, all]) => group(GROUPS[name], all, more[name])),
        ...documents.flatMap((fields) =>
            [...Map.groupBy(fields.values(), ({ field }) => sectionOf(field.path))].map(([, all]) => group(all[0].field.section, all)),
        ),
    ];
    const word = h("input", { type: "search", name: "word", placeholder: "Find a setting: seed, lr, size…", "aria-label": "Find a setting", oninput: find });
    const nothing = h("p", { class: "quiet", role: "status" });
    const element = h(
        "details",
        { class: "card more" },
        h("summary", {}, h("h2", {}, "More"), h("span", { class: "quiet" }, "every setting, with its default")),
        word,
        nothing,
        groups.map((part) => part.element),
    );
    let forAgents = false;

    function group(title, controls, others = []) {
        const boxes = h("div", { class: "grid-fields" }, controls.map(({ box }) => box), others);
        const summary = h("summary", {}, title);
        return { element: h("details", { class: "section" }, summary, boxes), summary, controls };
    }

    function control(field, isField, offered) {
        const id = freshId("field"),
            hint = freshId("hint"),
            name = field.path.split(".").at(-1);
        const input = inputOf(field, isField, offered, { id, name: isField ? `set.${field.path}` : name, "aria-describedby": hint });
        const undo = h("button", { type: "button", class: "plain undo", hidden: true, "aria-label": `Undo the change of ${field.path}`, onclick: () => undone(setting) }, "undo");
        const box = h(
            "div",
            { class: "field" },
            h("div", { class: "label" }, h("label", { for: id }, field.about.replace(/\.$/, "")), undo),
            input,
            h("p", { id: hint, class: "hint" }, isField ? field.path : name, isField && field.limits ? `: ${field.limits}` : ""),
        );
        const setting = { field, isField, input, undo, box, base: undefined, edited: false };
        input.addEventListener("input", () => {
            setting.edited = true;
            seen(setting);
            settle();
        });
        return setting;
    }

    function undone(setting) {
        setting.edited = false;
        write(setting, setting.base);
        seen(setting);
        settle();
        changed();
    }

    function seen({ undo, input, edited }) {
        undo.hidden = !edited;
        input.removeAttribute("aria-invalid");
    }

    const isSet = (path) => {
        const setting = options.get(path);
        return !setting.input.disabled && ![undefined, 0].includes(read(setting));
    };

    // Disables options that exclude each other or miss another; a disabled option is not sent.
    function settle() {
        for (const { input, box, field } of options.values()) {
            box.hidden = forAgents && !field.of_agents;
            input.disabled = box.hidden || Boolean(field.needs && !isSet(field.needs));
        }
        for (const { field } of options.values())
            for (const other of field.excludes.filter((name) => options.has(name))) {
                if (isSet(field.path)) options.get(other).input.disabled = true;
                else if (isSet(other)) options.get(field.path).input.disabled = true;
            }
        find();
    }

    // Shows the groups of this kind of job that contain the word; of alternative sections of agents, only the chosen
    // one.
    function find() {
        const wanted = word.value.trim().toLowerCase(),
            chosen = ["algorithm", "policy"].map((name) => documents[1].get(name));
        let matches = 0;
        for (const { element, summary, controls } of groups) {
            const [{ isField, field }] = controls,
                section = sectionOf(field.path);
            const apart = chosen.some(({ field: { names }, input }) => names.includes(section) && input.value !== section);
            const mine = !isField || (documents[Number(forAgents)].get(field.path) === controls[0] && !(forAgents && apart));
            let inside = 0;
            for (const { field, box } of controls) {
                const fits = `${field.path} ${field.about} ${summary.textContent}`.toLowerCase().includes(wanted);
                box.classList.toggle("beside", !fits);
                inside += Number(fits && !box.hidden);
            }
            element.hidden = !mine || !inside;
            if (wanted || element.dataset.matches) element.open = Boolean(wanted);
            element.dataset.matches = wanted;
            matches += mine ? inside : 0;
        }
        setText(nothing, wanted && !matches ? `No settings match “${word.value.trim()}”.` : "");
    }

    settle();
    return {
        element,
        options,
        settle,
        // Sets the defaults of the fields that are not edited; `reset` discards all edits.
        rebase(config, agentsNow, reset) {
            forAgents = agentsNow;
            const base = flat(config);
            for (const [path, setting] of documents[Number(forAgents)]) {
                setting.base = base[path];
                setting.box.hidden = isTable(config) && setting.base === undefined; // a field of agents
                if (reset) setting.edited = false;
                if (!setting.edited) write(setting, setting.base);
                if (reset) seen(setting);
            }
            settle();
        },
        // Sets an option or a field, as an edit does.
        say(path, value, of = options) {
            const setting = of.get(path);
            write(setting, value);
            setting.edited = true;
            settle();
        },
        wishes() {
            const wishes = {};
            for (const [path, setting] of options) {
                const value = setting.input.disabled ? undefined : read(setting);
                if (value === undefined) continue;
                const [name, inside] = path.split(".");
                wishes[name] = inside ? { ...wishes[name], [inside]: value } : value;
            }
            // Without fields to vary there is no sweep, even if other options of a sweep are set.
            if (!wishes.sweep?.over) delete wishes.sweep;
            return wishes;
        },
        fields: () => documents[Number(forAgents)],
        values: () => Object.fromEntries([...documents[Number(forAgents)]].filter(([, { edited }]) => edited).map(([path, setting]) => [path, read(setting)])),
        mark(message) {
            for (const [path, { input, edited }] of documents[Number(forAgents)]) {
                const blamed = message.startsWith(`${path} `) || message.startsWith(`${path.split(".").at(-1)} must`);
                input.ariaInvalid = blamed && edited ? "true" : null;
            }
        },
    };
}

const sectionOf = (path) => path.split(".").slice(0, -1).join(".");

// The first entry of a select is the default.
const optionsOf = ({ usual }, offered) => [["", usual ?? "none"], ...offered].map(([value, words]) => h("option", { value }, words));

const named = (names) => names.map((value) => [value, value]);

function inputOf(field, isField, offered, common) {
    const { kind, names, usual } = field,
        attributes = { ...common, placeholder: usual, autocomplete: "off", spellcheck: "false" };
    if (isField && names.length) return h("select", common, named(names).map(([value, words]) => h("option", { value }, words)));
    if (offered || names.length) return h("select", common, optionsOf(field, offered ?? named(names)));
    // An option with an automatic default can be set to yes and no.
    if (kind === "boolean" && !isField && usual) return h("select", common, optionsOf(field, [["true", "yes"], ["false", "no"]]));
    if (kind === "boolean") return h("input", { ...common, type: "checkbox" });
    if (kind === "table" || (isField && kind === "list")) return h("textarea", { ...attributes, rows: field.path.includes("picture") ? 6 : 2 });
    return h("input", { ...attributes, type: "text", inputmode: { number: "decimal", integer: "numeric" }[kind] });
}

const plain = (text) => (text === "" || Number.isNaN(Number(text)) ? text : Number(text));

// The value to send, or undefined for an option at its default. Text that is not a number is sent unchanged, so that the
// server reports what it expected.
function read({ field: { kind, path }, isField, input }) {
    const text = input.value.trim();
    if (kind === "boolean" && input.type === "checkbox") return isField ? input.checked : input.checked || undefined;
    if (!isField && !text) return undefined;
    if (kind === "boolean") return text === "true";
    if (kind === "text") return isField ? input.value : text;
    if (kind === "table") return tableOf(text);
    if (kind !== "list") return plain(text);
    if (!isField) return tagsOf(text);
    if (text.startsWith("[")) return rows(text);
    const parts = text.split(path.includes("picture") ? /\s+/ : /[\s,]+/).filter(Boolean);
    return path.includes("picture") ? parts : parts.map(plain);
}

// A list of lists, a row each: [0, 1], [2, 3].
function rows(text) {
    try {
        return JSON.parse(`[${text}]`);
    } catch {
        return text;
    }
}

function write({ field: { kind, path }, input }, value) {
    if (input.type === "checkbox") input.checked = Boolean(value);
    else if (kind === "table") input.value = Object.entries(value ?? {}).map(lineOf).join("\n");
    else if (Array.isArray(value?.[0])) input.value = value.map((row) => JSON.stringify(row)).join(",\n");
    else if (Array.isArray(value)) input.value = value.join(path.includes("picture") ? "\n" : ", ");
    else input.value = value ?? "";
}

const lineOf = ([path, values]) => `${path}=${Array.isArray(values) ? values.map((value) => JSON.stringify(value)).join(",") : values}`;

// A line for each field: optimizer.lr=0.02:0.2:log
function tableOf(text) {
    const lines = text.split("\n").map((line) => line.trim()).filter(Boolean);
    return Object.fromEntries(lines.map((line) => line.split(/=(.*)/s)).map(([path, values = ""]) => [path.trim(), values]));
}
