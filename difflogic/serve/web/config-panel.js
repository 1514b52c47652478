// The configuration of a job, to read.

import { card, h, scroll } from "./dom.js";

export function configPanel(job) {
    const sections = Object.entries(flat(job.config)).map(([path, value]) =>
        h("div", {}, h("dt", {}, path), h("dd", { class: "number" }, written(value))),
    );
    return card("config", "Configuration", h("div", { class: "facts" }, scroll("Fields", h("dl", {}, sections))));
}

// {"optimizer.lr": 0.05, ...} of the tables inside each other.
export function flat(table, path = "") {
    const found = {};
    for (const [name, value] of Object.entries(table)) {
        if (value !== null && typeof value === "object" && !Array.isArray(value))
            Object.assign(found, flat(value, `${path}${name}.`));
        else found[path + name] = value;
    }
    return found;
}

function written(value) {
    if (!Array.isArray(value)) return value === "" ? "–" : String(value);
    if (!value.length) return "–";
    if (Array.isArray(value[0])) return value.map((row) => row.join(", ")).join("\n");
    return value.length > 4 && typeof value[0] === "string" && value[0].length > 2 && new Set(value).size > 1
        ? value.join("\n")
        : value.join(", ");
}
