// All jobs: filters, live updates, and a selection for comparison.

import { get, session } from "./api.js";
import { h, offerNames, throttle } from "./dom.js";
import { listen } from "./events.js";
import { jobRow } from "./job-row.js";
import { announcer, empty, errorPlace, patiently, showConnection } from "./notices.js";
import { owners } from "./owners.js";
import { KINDS, STATUSES } from "./progress.js";
import { followTurns } from "./queue.js";
import { selection } from "./selection.js";

const PAGE = 30;
export const SORTS = {
    newest: "Newest first",
    name: "By name",
    priority: "By priority",
    wrong: "Fewest wrong cells first",
    gates: "Fewest gates first",
};

const newJob = () => h("a", { class: "button primary", href: "#/new" }, "New job");

export function jobsView(root, signal) {
    const rows = new Map(),
        say = announcer();
    const place = errorPlace();
    const list = h("ul", { class: "jobs", "aria-label": "Jobs" });
    const nothing = h("div", { hidden: true });
    const several = h("button", { type: "button", class: "plain", "aria-pressed": "false", onclick: choosing }, "Select");
    const more = h("button", { type: "button", hidden: true, onclick: () => load(next) }, "Show older jobs");
    const select = (name, label, words) => {
        const options = Object.entries(words).map(([value, text]) => h("option", { value }, text));
        return h("select", { name, "aria-label": label, onchange: () => load() }, options);
    };
    const ownerFilter = owners(() => load(), place, signal);
    const filters = {
        q: h("input", { type: "search", name: "q", placeholder: "Search by name or id", "aria-label": "Search by name or id", oninput: throttle(() => load(), 250, signal) }),
        status: select("status", "State", { "": "Every state", ...STATUSES }),
        kind: select("kind", "Kind", { "": "Every kind", ...KINDS }),
        tag: select("tag", "Tag", { "": "Every tag" }),
        ...(session().roles.includes("operator") && { owner: ownerFilter.filter }),
        sort: select("sort", "Order", SORTS),
    };
    const chosen = selection(place, (job, id) => (job ? changed(job) : drop(id)));
    let next = null,
        turn = 0,
        meanwhile = null; // updates by the stream while the list is loaded, which may be newer than the list

    root.append(
        h("div", { class: "headline" }, h("h1", {}, "Jobs"), h("div", { class: "buttons" }, several, newJob())),
        h("form", { class: "filters", role: "search", onsubmit: (event) => event.preventDefault() }, Object.values(filters)),
        ownerFilter.words,
        chosen.element,
        place.element,
        list,
        nothing,
        h("div", { class: "buttons middle" }, more),
    );

    // Ticks appear when they are asked for, and with them what was ticked goes.
    function choosing() {
        const on = several.getAttribute("aria-pressed") !== "true";
        several.setAttribute("aria-pressed", String(on));
        list.classList.toggle("choosing", on);
        if (on) return;
        for (const tick of list.querySelectorAll(".pick :checked")) tick.checked = false;
        chosen.keep(new Map());
    }

    // Moves the jobs on a circuit under the job that trained it.
    function arrange() {
        for (const row of rows.values()) {
            const { source, kind } = row.shown(),
                above = rows.get(source);
            if (above && kind !== "train" && kind !== "sweep" && !above.element.contains(row.element)) above.under([row.element]);
        }
    }

    const wanted = () =>
        Object.entries(filters)
            .map(([name, { value }]) => [name, value.trim()])
            .filter(([, value]) => value);

    const ask = (more) => get(`/jobs?${new URLSearchParams([...wanted(), ["limit", PAGE], ...more])}`, { signal });

    // The first page, what runs before everything else, or the one that goes on from `before`.
    async function load(before = null) {
        const mine = ++turn;
        meanwhile = [];
        try {
            // Running jobs come first, unless another order is chosen.
            const ahead = before === null && !filters.status.value && filters.sort.value === "newest";
            const both = () => Promise.all([ahead ? ask([["status", "running"]]) : { jobs: [] }, ask(before === null ? [] : [["before", before]])]);
            const [running, reply] = await patiently(both, place.show, signal);
            if (mine !== turn) return;
            place.clear();
            if (before === null) {
                rows.clear();
                list.replaceChildren();
            }
            for (const job of [...running.jobs, ...reply.jobs]) if (!rows.has(job.id)) add(job, false);
            arrange();
            meanwhile.forEach((again) => again());
            meanwhile = null;
            chosen.keep(rows); // nothing is done with what is not seen
            next = reply.next;
            more.hidden = next === null;
            showEmpty();
            lookAtTurns();
            offerTags();
            ownerFilter.look();
        } catch (error) {
            place.show(error);
        }
    }

    async function offerTags() {
        const reply = await get("/tags", { signal }).catch(place.show);
        if (reply) offerNames(filters.tag, "Every tag", reply.tags.map(({ tag }) => tag), 1);
    }

    function add(job, first) {
        const row = jobRow(job, chosen.choose, chosen.has(job.id), changed);
        rows.set(job.id, row);
        if (first) list.prepend(row.element);
        else list.append(row.element);
    }

    function drop(id) {
        const row = rows.get(id);
        row?.element.replaceWith(...row.under());
        rows.delete(id);
        chosen.keep(rows);
        showEmpty();
    }

    function showEmpty() {
        nothing.hidden = rows.size > 0;
        const filtered = wanted().some(([name]) => name !== "sort");
        const first = ["No jobs yet", "Teach cells an image: a checkerboard takes about a minute, and is selected already.", newJob()];
        nothing.replaceChildren(empty(...(filtered ? ["No matching jobs", "Change the search, or select every state and kind."] : first)));
    }

    const FITS = {
        q: (job, text) => `${job.name} ${job.id}`.toLowerCase().includes(text.toLowerCase()),
        tag: (job, tag) => job.tags.includes(tag),
        sort: () => true,
    };
    const fits = (job) => wanted().every(([name, value]) => FITS[name]?.(job, value) ?? job[name] === value);

    function changed(job) {
        const row = rows.get(job.id);
        chosen.update(job);
        if (job.tags.some((tag) => ![...filters.tag.options].some(({ value }) => value === tag))) offerTags();
        if (row && fits(job)) row.update(job);
        else if (row) drop(job.id);
        else if (fits(job)) {
            add(job, true);
            arrange();
            showEmpty();
        }
        if (job.status === "running" || row) say(job, job.words.standing);
    }

    const lookAtTurns = followTurns(() => [...rows.values()].map((row) => row.shown()), (job) => rows.get(job.id)?.update(job), signal);

    // The list is asked for once the stream is open, so that no change falls between the two.
    let loaded = false;
    function onState(state, message) {
        showConnection(state, message);
        if (loaded || state === "asleep") return;
        loaded = true;
        load();
    }
    const applied = (use) => (data) => {
        meanwhile?.push(() => use(data));
        use(data);
    };
    listen("/events", { job: applied(changed), deleted: applied(({ id }) => drop(id)) }, onState, signal);
}
