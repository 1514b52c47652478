// How a job is to run: its name, engine, population and place in the queue.

import { h } from "./dom.js";
import { numberField, numberOf, textField, textOf } from "./inputs.js";

const ENGINES = ["auto", "cpu", "gpu", "reference"];
const NUMBERS = ["population", "stop_when_solved", "priority"];

// {element, wishes(): fields of a request, suggest(name)}
export function runFields(name) {
    const engines = ENGINES.map((value) => h("option", { value }));
    const title = textField("name", "Name", { placeholder: name, maxlength: 100 });
    const fields = h(
        "div",
        { class: "grid-fields" },
        title,
        textField("engine", "Engine", { placeholder: "auto", list: "engines" }),
        h("datalist", { id: "engines" }, engines),
        numberField("population", "Models at once", "1"),
        numberField("stop_when_solved", "Stop when so many are solved", "never"),
        numberField("priority", "Priority (−10 to 10)", "0"),
    );
    const element = h("fieldset", {}, h("legend", {}, "Run"), fields);
    return {
        element,
        wishes() {
            const numbers = NUMBERS.map((field) => [field, numberOf(element, field)]);
            return { name: textOf(element, "name"), engine: textOf(element, "engine"), ...Object.fromEntries(numbers) };
        },
        suggest(other) {
            title.querySelector("input").placeholder = other;
        },
    };
}
