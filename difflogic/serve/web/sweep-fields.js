// Many trials instead of one training: the fields in which they differ, and how they are chosen and judged.

import { h } from "./dom.js";
import { hinted, numberField, numberOf, selectField, textOf } from "./inputs.js";

export const METHODS = ["grid", "random", "optuna", "halving"];
export const METRICS = { automata: ["tts", "hard_loss", "gates"], agents: ["return", "tts"] };
const named = (names) => ["", ...names].map((name) => [name, name || "the default"]);

// `given`: the specification of a sweep that this is a copy of.
// {element, wishes(): of a request's `sweep`, or null; suggest(forAgents)}
export function sweepFields(given) {
    const over = h("textarea", { name: "over", rows: 3, spellcheck: "false", placeholder: "optimizer.lr=0.02:0.2:log\nseed=0..3" });
    const metric = selectField("metric", "Metric", named([]));
    const element = h(
        "fieldset",
        {},
        h("legend", {}, "Sweep"),
        h(
            "div",
            { class: "grid-fields" },
            hinted(
                h("label", { class: "field" }, "Fields to vary", over),
                "One field with its values per line: 4,8,16 or 0..31, or a range 0.02:0.2. If empty, there is one training.",
            ),
            hinted(metric, "tts: cost of a solution. hard_loss: wrong values. gates: active gates of solved trials. return: mean return of agents."),
            selectField("method", "Method", named(METHODS)),
            hinted(numberField("trials", "Trials", "all of a grid"), "Required for ranges."),
        ),
    );
    const written = (value) => (Array.isArray(value) ? value.map((each) => JSON.stringify(each)).join(",") : value);
    over.value = Object.entries(given?.over ?? {}).map(([path, values]) => `${path}=${written(values)}`).join("\n");
    for (const name of ["method", "trials"]) element.querySelector(`[name=${name}]`).value = given?.[name] ?? "";

    return {
        element,
        wishes() {
            const lines = over.value.split("\n").map((line) => line.trim()).filter(Boolean);
            if (!lines.length) return null;
            const axes = lines.map((line) => line.split(/=(.*)/s)).map(([path, values = ""]) => [path.trim(), values]);
            const trials = numberOf(element, "trials");
            return { over: Object.fromEntries(axes), metric: textOf(element, "metric"), method: textOf(element, "method"), trials };
        },
        suggest(forAgents) {
            const names = METRICS[forAgents ? "agents" : "automata"];
            const options = named(names).map(([value, words]) => h("option", { value }, words));
            metric.querySelector("select").replaceChildren(...options);
            metric.querySelector("select").value = names.includes(given?.metric) ? given.metric : "";
        },
    };
}
