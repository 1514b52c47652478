// What a follow-up job found, in words or as a table, or what became of a training's attempts; null where there is
// nothing to say.

import { h } from "./dom.js";
import { count, loss, plural } from "./format.js";

export function resultOf({ result }) {
    const { attempts, measures, left_out: left, metric, text } = result ?? {};
    if (text) return h("p", {}, text);
    if (attempts) return h("ul", {}, attempts.map((each) => h("li", {}, attemptWords(each))));
    if (metric) return h("p", {}, trialWords(result));
    if (measures)
        return h(
            "table",
            { class: "measures" },
            h(
                "tbody",
                {},
                Object.entries(measures).map(([name, text]) =>
                    h("tr", {}, h("th", { scope: "row" }, name.replaceAll("-", " ")), h("td", {}, text)),
                ),
            ),
        );
    const words = Object.entries(left ?? {}).map(([format, reason]) => `${format} was left out: ${reason}`);
    return words.length ? h("p", {}, words.join(" ")) : null;
}

function trialWords({ metric, best, failed }) {
    const values = Object.entries(best?.values ?? {}).map(([path, value]) => `${path} ${Array.isArray(value) ? value.join(", ") : value}`);
    const found = best ? `The best is trial ${best.trial}, ${metric} ${loss(best.value)}, with ${values.join(", ")}.` : `No trial has a ${metric} yet.`;
    return failed ? `${found} ${plural(failed, "trial")} failed.` : found;
}

function attemptWords({ number, seed, status, epoch, wrong, score, given_up: why }) {
    const at = status === "running" ? "" : ` at ${score === undefined ? "epoch" : "step"} ${count(epoch)}`,
        parts = [`Attempt ${number} (seed ${seed}): ${status}${at}`];
    if (wrong) parts.push(`${count(wrong)} wrong`);
    if (typeof score === "number") parts.push(`mean return ${loss(score)}`);
    return [...parts, ...(why ? [why] : [])].join(", ");
}
