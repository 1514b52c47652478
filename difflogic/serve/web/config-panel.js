// The configuration of a job, to read: what differs from its preset, and all of it behind a fold.

import { get } from "./api.js";
import { h, scroll } from "./dom.js";
import { fold } from "./fold.js";

export function configPanel(job) {
    const config = job.config.config ?? job.config, // a sweep has the configuration of its trials
        fields = Object.entries(flat(job.config));
    const differs = h("div", {});
    const list = (rows) => h("dl", {}, rows.map(([path, value]) => h("div", {}, h("dt", {}, path), h("dd", { class: "number" }, written(value)))));
    const complete = h("details", {}, h("summary", {}, `All ${fields.length} settings`), scroll("Fields", list(fields)));

    async function load() {
        const { presets } = await get("/presets");
        const preset = presets.find(({ name }) => name === config.name);
        const usual = preset && flat(preset.config);
        const rows = usual ? Object.entries(flat(config)).filter(([path, value]) => JSON.stringify(value) !== JSON.stringify(usual[path])) : [];
        differs.replaceChildren(
            h("p", { class: "quiet" }, usual ? `Settings that differ from the preset ${config.name}: ${rows.length || "none"}.` : "The job does not use a preset of this server."),
            list(rows),
        );
    }
    return fold("config", "Configuration", load, h("div", { class: "facts" }, differs, complete)).element;
}

// Nested tables as {"optimizer.lr": 0.05, ...}.
export function flat(table, path = "") {
    const fields = {};
    for (const [name, value] of Object.entries(table)) {
        if (value !== null && typeof value === "object" && !Array.isArray(value)) Object.assign(fields, flat(value, `${path}${name}.`));
        else fields[path + name] = value;
    }
    return fields;
}

function written(value) {
    if (!Array.isArray(value)) return value === "" ? "–" : String(value);
    if (!value.length) return "–";
    if (Array.isArray(value[0])) return value.map((row) => row.join(", ")).join("\n");
    return value.length > 4 && typeof value[0] === "string" && value[0].length > 2 && new Set(value).size > 1 ? value.join("\n") : value.join(", ");
}
