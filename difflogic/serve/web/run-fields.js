// How a job is to run: its name, recipe, engine, population, until when, what it begins with, and its place in the queue.

import { h } from "./dom.js";
import { isPolicy } from "./progress.js";
import { tagsOf } from "./tags.js";
import { checkField, hinted, numberField, numberOf, selectField, textField, textOf } from "./inputs.js";

export const ENGINES = ["auto", "cpu", "gpu", "reference"];
const RECIPES = { paper: "the paper's", robust: "robust: more seeds succeed" };
const TEXTS = ["name", "engine", "recipe", "init_from", "within"];
const NUMBERS = ["population", "stop_when_solved", "restarts", "priority"];

// `trained`: jobs whose circuit another one can begin with; `values`: of the job that this is a copy of.
// {element, wishes(): fields of a request, suggest({name, recipes, config})}
export function runFields(trained, values) {
    const engines = ENGINES.map((value) => h("option", { value }));
    const title = textField("name", "Name", { maxlength: 100 }),
        recipe = selectField("recipe", "Recipe", []);
    const circuits = trained.map(({ id, name }) => [id, `from ${name} (${id.slice(0, 4)})`]);
    const from = values?.init_from;
    if (from && !trained.some(({ id }) => id === from)) circuits.push([from, `from ${from}`]);
    const fields = h(
        "div",
        { class: "grid-fields" },
        title,
        hinted(recipe, "How to train. The robust recipe restarts with different wiring when training stalls."),
        textField("engine", "Engine", { placeholder: "auto", list: "engines" }),
        h("datalist", { id: "engines" }, engines),
        hinted(numberField("population", "Models at once", "1"), "Each model has its own seed, and so its own wiring."),
        hinted(
            numberField("stop_when_solved", "Stop after this many solved models", "never"),
            "Otherwise training continues to the last epoch. With restarts, the first solution ends it.",
        ),
        hinted(
            numberField("restarts", "Restarts when training stalls", "as the recipe says"),
            "All attempts share the epochs. 0 allows one attempt only.",
        ),
        hinted(
            checkField("until_solved", "Train until solved"),
            "Restarts until a circuit is right on fresh starts, after more steps and on a larger grid. An agent must pass a hundred fresh episodes.",
        ),
        hinted(
            textField("within", "Time limit", { placeholder: "60s, 5m, 2h or 2000 epochs" }),
            "Training ends here, solved or not. If empty, the server's limit applies.",
        ),
        hinted(
            selectField("init_from", "Start from a circuit", [["", "a new one"], ...circuits]),
            "The wiring is kept, so the circuit must have the same shape. There is one attempt.",
        ),
        numberField("priority", "Priority (−10 to 10)", "0"),
        hinted(textField("tags", "Tags", { placeholder: "none" }), "Words to search by, separated by commas."),
    );
    const element = h("fieldset", { oninput: exclude, onchange: exclude }, h("legend", {}, "Run"), fields);
    const field = (name) => element.querySelector(`[name="${name}"]`);
    for (const name of [...TEXTS, ...NUMBERS]) if (values?.[name]) field(name).value = values[name];
    field("tags").value = values?.tags?.join(", ") ?? "";
    field("until_solved").checked = Boolean(values?.until_solved);
    let forAgents = false;
    exclude();

    // What cannot go together is not offered together; what is off is not sent either.
    function exclude() {
        const until = field("until_solved"),
            borrowed = field("init_from").value !== "";
        for (const name of ["recipe", "restarts"]) field(name).closest("div.field").hidden = field(name).disabled = forAgents;
        until.disabled = borrowed || (!forAgents && field("restarts").value.trim() !== "");
        field("within").disabled = until.disabled || !until.checked;
        field("restarts").disabled = forAgents || borrowed || (until.checked && !until.disabled);
        for (const name of ["population", "stop_when_solved"]) field(name).disabled = forAgents && until.checked && !until.disabled;
        field("init_from").disabled = !borrowed && until.checked && !until.disabled;
    }

    const offered = (names, read) =>
        names.filter((name) => !field(name).disabled).map((name) => [name, read(element, name)]);

    return {
        element,
        wishes: () =>
            Object.fromEntries([
                ...offered(TEXTS, textOf),
                ...offered(NUMBERS, numberOf),
                ["tags", tagsOf(field("tags").value)],
                ...offered(["until_solved"], () => field("until_solved").checked),
            ]),
        suggest({ name, recipes, config }) {
            forAgents = isPolicy(config);
            title.querySelector("input").placeholder = name;
            const options = recipes.map((value) => h("option", { value }, RECIPES[value] ?? value));
            recipe.querySelector("select").replaceChildren(...options);
            if (recipes.includes(values?.recipe)) recipe.querySelector("select").value = values.recipe;
            exclude();
        },
    };
}
