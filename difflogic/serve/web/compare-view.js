// Several runs over each other: curves in a colour each, and how they ended.

import { get, UNREACHABLE } from "./api.js";
import { curves, Rows, seriesOfMany } from "./curves.js";
import { h, repeat } from "./dom.js";
import { count, loss } from "./format.js";
import { empty, errorPlace } from "./notices.js";
import { isOver, statusPill } from "./progress.js";

const MOST = 8;
const EVERY = 3000;

export function compareView(root, signal, ids) {
    const chosen = ids.split(",").filter(Boolean).slice(0, MOST);
    const place = errorPlace(),
        plot = curves();
    const body = h("tbody", {});
    const head = ["Run", "State", "Epochs", "Soft loss", "Hard loss", "Active gates", ""].map((name) =>
        h("th", { scope: "col" }, name),
    );
    const picker = h("select", { "aria-label": "Add a run", onchange: () => move([...chosen, picker.value]) });
    const nothing = empty("Nothing to compare", "Add a run above, or tick some in the list of jobs.");
    const shown = h(
        "div",
        { class: "stacked" },
        h(
            "section",
            { class: "card", "aria-labelledby": "curves-title" },
            h("h2", { id: "curves-title" }, "Curves"),
            plot.element,
        ),
        h(
            "div",
            { class: "card scroll", tabindex: "0", role: "group", "aria-label": "Runs" },
            h("table", { class: "rows compared" }, h("thead", {}, h("tr", {}, head)), body),
        ),
    );
    root.append(
        h("div", { class: "headline" }, h("h1", {}, "Compare runs"), h("label", { class: "inline" }, "Add ", picker)),
        place.element,
        nothing,
        shown,
    );
    nothing.hidden = chosen.length > 0;
    shown.hidden = !chosen.length;

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

    const stop = new AbortController();
    async function load() {
        try {
            const jobs = await Promise.all(chosen.map((id) => get(`/jobs/${id}`, { signal })));
            const { jobs: rows } = await get(`/compare?ids=${chosen.join(",")}`, { signal }); // all, where they are over
            place.clear();
            show(jobs, rows);
            if (jobs.every(isOver)) stop.abort();
        } catch (error) {
            place.show(error);
            if (error.status !== UNREACHABLE) stop.abort();
        }
    }

    function show(jobs, found) {
        const names = new Set(jobs.map(({ name }) => name));
        const runs = jobs.map((job) => {
            const rows = new Rows();
            rows.add(found[job.id]);
            return { name: names.size < jobs.length ? `${job.name} (${job.id.slice(0, 4)})` : job.name, rows };
        });
        plot.show(...seriesOfMany(runs), Math.max(1, ...runs.map(({ rows }) => rows.last)));
        body.replaceChildren(...jobs.map((job, index) => row(job, index, runs[index].name)));
    }

    function row(job, index, name) {
        const drop = h(
            "button",
            {
                type: "button",
                class: "plain",
                "aria-label": `Take ${name} away`,
                onclick: () => move(chosen.filter((id) => id !== job.id)),
            },
            "×",
        );
        const numbers = [
            `${count(job.epoch)} of ${count(job.epochs)}`,
            loss(job.soft_loss),
            job.solved ? "solved" : loss(job.hard_loss),
            count(job.active_gates),
        ];
        return h(
            "tr",
            {},
            h(
                "th",
                { scope: "row" },
                h("i", { class: `key run-${index % MOST}`, "aria-hidden": "true" }),
                h("a", { href: `#/jobs/${job.id}` }, name),
            ),
            h("td", {}, statusPill(job).element),
            numbers.map((text) => h("td", { class: "number" }, text)),
            h("td", {}, drop),
        );
    }

    offer().catch(place.show);
    if (chosen.length) repeat(load, EVERY, AbortSignal.any([signal, stop.signal]));
}
