// Comparison of runs: their curves in one chart, their results, and the settings that differ.

import { get, UNREACHABLE } from "./api.js";
import { flat } from "./config-panel.js";
import { curves, METRICS, Rows, seriesOfMany } from "./curves.js";
import { card, h, headedTable, inline, numberCell, repeat, scroll, tableRow } from "./dom.js";
import { count, loss } from "./format.js";
import { empty, errorPlace } from "./notices.js";
import { imageOf } from "./job-image.js";
import { isOver, statusPill } from "./progress.js";

const MOST = 8;
const EVERY = 3000;
const LONGEST = 40; // characters of a setting: an image has thousands

export function compareView(root, signal, ids) {
    const chosen = ids.split(",").filter(Boolean).slice(0, MOST);
    const place = errorPlace(),
        plot = curves();
    const body = h("tbody", {});
    const hidden = new Set();
    const metric = h("select", { onchange: () => draw() }, Object.keys(METRICS).map((name) => h("option", {}, name)));
    const axis = h("select", { onchange: () => draw() }, h("option", {}, "epochs"), h("option", {}, "seconds"));
    const differences = scroll("Settings");
    const head = ["Run", "State", "Epochs", "Soft loss", "Wrong cells", "Gates", h("span", { class: "unseen" }, "Remove")];
    const picker = h("select", { "aria-label": "Add a run", onchange: () => move([...chosen, picker.value]) });
    const nothing = empty("Nothing to compare", "Add a run above, or select some in the list of jobs.");
    const shown = h(
        "div",
        { class: "stacked" },
        card("learning", "Curves", h("div", { class: "buttons" }, inline("Show ", metric), inline("over ", axis)), plot.element),
        card("runs", "Runs", scroll("Runs", headedTable("compared", head, body))),
        card("settings", "Settings that differ", differences),
    );
    root.append(
        h("div", { class: "headline" }, h("h1", {}, "Compare runs"), inline("Add ", picker)),
        place.element,
        chosen.length ? shown : nothing,
    );

    const move = (others) => {
        location.hash = `#/compare/${others.join(",")}`;
    };

    async function offer() {
        const { jobs } = await get("/jobs?kind=train&limit=100", { signal });
        const left = jobs.filter(({ id }) => !chosen.includes(id));
        picker.replaceChildren(
            h("option", { value: "" }, left.length ? "a run…" : "no other runs"),
            ...left.map(({ id, name }) => h("option", { value: id }, `${name} (${id.slice(0, 4)})`)),
        );
        picker.disabled = !left.length || chosen.length >= MOST;
    }

    let isOpen = true;
    async function load() {
        try {
            const jobs = await Promise.all(chosen.map((id) => get(`/jobs/${id}`, { signal })));
            const { jobs: rows } = await get(`/compare?ids=${chosen.join(",")}`, { signal }); // every row of a run that is over
            place.clear();
            show(jobs, rows);
            isOpen = !jobs.every(isOver);
        } catch (error) {
            place.show(error);
            isOpen = error.status === UNREACHABLE;
        }
    }

    function show(jobs, metrics) {
        const names = new Set(jobs.map(({ name }) => name));
        runs = jobs.map((job) => {
            const rows = new Rows();
            rows.add(metrics[job.id]);
            const name = names.size < jobs.length ? `${job.name} (${job.id.slice(0, 4)})` : job.name;
            return { id: job.id, name, rows };
        });
        draw();
        body.replaceChildren(...jobs.map((job, index) => row(job, index, runs[index].name)));
        differences.replaceChildren(differing(jobs.map(settingsOf), runs));
    }

    let runs = [];
    function draw() {
        const unit = axis.value === "epochs" ? "epoch" : "second";
        const seen = runs.map((run) => ({ ...run, hidden: hidden.has(run.id) }));
        const last = ({ rows }) => (unit === "epoch" ? rows.last : (rows.best?.seconds.get(rows.last) ?? 0));
        plot.count(unit);
        plot.show(...seriesOfMany(seen, metric.value, unit), Math.max(1, ...runs.map(last)));
    }

    function row(job, index, name) {
        const drop = () => move(chosen.filter((id) => id !== job.id));
        const visible = h("input", { type: "checkbox", checked: !hidden.has(job.id), "aria-label": `Show ${name} in the curves`, onchange: toggle });
        function toggle() {
            if (!hidden.delete(job.id)) hidden.add(job.id);
            draw();
        }
        const numbers = [
            `${count(job.progress)} of ${count(job.goal)}`,
            loss(job.soft_loss),
            job.solved ? "solved" : loss(job.hard_loss),
            count(job.active_gates),
        ];
        const key = h("i", { class: `key run-${index}`, "aria-hidden": "true" });
        const head = [visible, key, imageOf(job).element, h("a", { href: `#/jobs/${job.id}` }, name)];
        const remove = h("button", { type: "button", class: "plain", "aria-label": `Remove ${name}`, onclick: drop }, "×");
        return tableRow(head, statusPill(job).element, ...numbers.map(numberCell), remove);
    }

    offer().catch(place.show);
    if (chosen.length) repeat(() => isOpen && load(), EVERY, signal);
}

// The settings of a job by path: its configuration, and the options of its request.
function settingsOf({ config, engine, request }) {
    const fields = Object.entries(flat({ ...config, engine, population: 1, ...request }));
    return new Map(fields.map(([path, value]) => [path, JSON.stringify(value ?? null)]));
}

// A table of the settings that differ between the runs.
function differing(settings, runs) {
    const paths = [...new Set(settings.flatMap((fields) => [...fields.keys()]))].sort();
    const rows = paths.filter((path) => new Set(settings.map((fields) => fields.get(path))).size > 1);
    if (!rows.length)
        return h("p", { class: "quiet" }, runs.length > 1 ? "None: all runs have the same settings." : "Add another run.");
    const brief = (text = "none") => (text.length > LONGEST ? `${text.slice(0, LONGEST)}…` : text);
    const row = (path) => tableRow(path, ...settings.map((fields) => brief(fields.get(path))));
    return headedTable("settings", ["Setting", ...runs.map(({ name }) => name)], h("tbody", {}, rows.map(row)));
}
