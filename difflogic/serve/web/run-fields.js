// How a job is to run: its name, recipe, engine, population, what it begins with, and its place in the queue.

import { h } from "./dom.js";
import { numberField, numberOf, selectField, textField, textOf } from "./inputs.js";

export const ENGINES = ["auto", "cpu", "gpu", "reference"];
const RECIPES = { paper: "the paper's", robust: "robust: more seeds succeed" };
const TEXTS = ["name", "engine", "recipe", "init_from"];
const NUMBERS = ["population", "stop_when_solved", "restarts", "priority"];

// `trained`: jobs whose circuit another one can begin with; `values`: of the job that this is a copy of.
// {element, wishes(): fields of a request, suggest({name, recipes})}
export function runFields(trained, values) {
    const engines = ENGINES.map((value) => h("option", { value }));
    const title = textField("name", "Name", { maxlength: 100 }),
        recipe = selectField("recipe", "Recipe", []);
    const circuits = trained.map(({ id, name }) => [id, `that of ${name} (${id.slice(0, 4)})`]);
    const from = values?.init_from;
    if (from && !trained.some(({ id }) => id === from)) circuits.push([from, `that of ${from}`]);
    const fields = h(
        "div",
        { class: "grid-fields" },
        title,
        recipe,
        textField("engine", "Engine", { placeholder: "auto", list: "engines" }),
        h("datalist", { id: "engines" }, engines),
        numberField("population", "Models at once", "1"),
        numberField("stop_when_solved", "Stop when so many are solved", "never"),
        numberField("restarts", "Begin again where it stalls, so often", "0"),
        selectField("init_from", "Begin with the circuit", [["", "a fresh one"], ...circuits]),
        numberField("priority", "Priority (−10 to 10)", "0"),
    );
    const element = h("fieldset", {}, h("legend", {}, "Run"), fields);
    for (const name of [...TEXTS, ...NUMBERS])
        if (values?.[name]) element.querySelector(`[name="${name}"]`).value = values[name];
    return {
        element,
        wishes: () =>
            Object.fromEntries([
                ...TEXTS.map((field) => [field, textOf(element, field)]),
                ...NUMBERS.map((field) => [field, numberOf(element, field)]),
            ]),
        suggest({ name, recipes }) {
            title.querySelector("input").placeholder = name;
            const options = recipes.map((value) => h("option", { value }, RECIPES[value] ?? value));
            recipe.querySelector("select").replaceChildren(...options);
        },
    };
}
