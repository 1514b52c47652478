// The options of a request but for its target, each as a control that is made from what the server says about it.

import { h } from "./dom.js";
import { optionOf, optionsOf, titled } from "./option.js";

// `about`: what GET /fields?of=request says; `values`: a request that this is a copy of; `choices`: {path: [[value,
// words], ...]} of options whose values only the page knows.
// {element, wishes(): fields of a request, suggest({name, recipes, forAgents})}
export function requestFields(about, values, choices) {
    const shown = about.filter(({ section, path }) => section !== "target" && (section !== "what" || path === "recipe"));
    const controls = new Map(shown.map((told) => [told.path, optionOf(told, choices[told.path])]));
    const groups = Map.groupBy(controls.values(), ({ told: { path, section } }) => (path === "recipe" ? "run" : section));
    const element = h(
        "div",
        { class: "together", oninput: exclude, onchange: exclude },
        [...groups].map(([name, fields]) =>
            h("fieldset", {}, h("legend", {}, titled(name)), h("div", { class: "grid-fields" }, fields.map(({ box }) => box))),
        ),
    );
    let forAgents = false;
    for (const [path, { write }] of controls) write(path.split(".").reduce((inside, name) => inside?.[name], values));
    exclude();

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
        const { input, read } = controls.get(path);
        return !input.disabled && ![undefined, 0].includes(read());
    }

    return {
        element,
        wishes() {
            const wishes = {};
            for (const [path, { input, read }] of controls) {
                const value = input.disabled ? undefined : read();
                if (value === undefined) continue;
                const [name, inside] = path.split(".");
                wishes[name] = inside ? { ...wishes[name], [inside]: value } : value;
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
            input.replaceChildren(...optionsOf(told, recipes.map((value) => [value, value])));
            input.value = recipes.includes(before) ? before : "";
            exclude();
        },
    };
}
