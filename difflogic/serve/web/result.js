// The result of a post-processing job, in words or as a table, or of a training's attempts; null if there is none.

import { h, tableRow } from "./dom.js";

export function resultOf({ result, words }) {
    if (!result?.measures) return words.results.length ? h("ul", { class: "results" }, words.results.map((text) => h("li", {}, text))) : null;
    const rows = Object.entries(result.measures).map(([name, text]) => tableRow(name.replaceAll("-", " "), text));
    return h("table", { class: "measures" }, h("tbody", {}, rows));
}
