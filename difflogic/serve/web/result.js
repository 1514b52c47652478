// The result of a post-processing job, in words or as a table, or of a training's attempts; null if there is none.

import { h } from "./dom.js";

export function resultOf({ result, words }) {
    if (!result?.measures) return words.results.length ? h("ul", { class: "results" }, words.results.map((text) => h("li", {}, text))) : null;
    return h(
        "table",
        { class: "measures" },
        h(
            "tbody",
            {},
            Object.entries(result.measures).map(([name, text]) =>
                h("tr", {}, h("th", { scope: "row" }, name.replaceAll("-", " ")), h("td", {}, text)),
            ),
        ),
    );
}
