// The configuration of a job, to read: what differs from its preset, and all of it behind a fold.

import { get } from "./api.js";
import { h, scroll } from "./dom.js";
import { fold } from "./fold.js";

export function configPanel(job) {
    const config = job.config.config ?? job.config, // of a sweep that of its trials
        fields = Object.entries(flat(job.config));
    const differs = h("div", {});
    const list = (rows) => h("dl", {}, rows.map(([path, value]) => h("div", {}, h("dt", {}, path), h("dd", { class: "number" }, written(value)))));
    const whole = h("details", {}, h("summary", {}, `All ${fields.length} settings`), scroll("Fields", list(fields)));

    async function load() {
        const { presets } = await get("/presets");
        const preset = presets.find(({ name }) => name === config.name);
        const usual = preset && flat(preset.config);
        const rows = usual ? Object.entries(flat(config)).filter(([path, value]) => JSON.stringify(value) !== JSON.stringify(usual[path])) : [];
        differs.replaceChildren(
            h("p", { class: "quiet" }, usual ? `Other than the preset ${config.name}: ${rows.length || "nothing"}${rows.length ? " settings" : ""}.` : "It was made of no preset that this server has."),
            list(rows),
        );
    }
    return fold("config", "Configuration", load, h("div", { class: "facts" }, differs, whole)).element;
}

// {"optimizer.lr": 0.05, ...} of the tables inside each other.
export function flat(table, path = "") {
    const found = {};
    for (const [name, value] of Object.entries(table)) {
        if (value !== null && typeof value === "object" && !Array.isArray(value)) Object.assign(found, flat(value, `${path}${name}.`));
        else found[path + name] = value;
    }
    return found;
}

function written(value) {
    if (!Array.isArray(value)) return value === "" ? "–" : String(value);
    if (!value.length) return "–";
    if (Array.isArray(value[0])) return value.map((row) => row.join(", ")).join("\n");
    return value.length > 4 && typeof value[0] === "string" && value[0].length > 2 && new Set(value).size > 1 ? value.join("\n") : value.join(", ");
}
