// One job: how it stands, the automaton as it learns, its curves, gates, circuit, log and files.

import { actionButtons, priorityField } from "./actions.js";
import { get } from "./api.js";
import { automatonPanel } from "./automaton-panel.js";
import { circuitPanel } from "./circuit-panel.js";
import { configPanel } from "./config-panel.js";
import { curves, Rows, seriesOfOne } from "./curves.js";
import { h, setText } from "./dom.js";
import { listen } from "./events.js";
import { filesPanel } from "./files-panel.js";
import { count, loss } from "./format.js";
import { gatesPanel } from "./gates.js";
import { logPanel } from "./log-panel.js";
import { announcer, errorPlace, showConnection } from "./notices.js";
import { facts, isOver, progressBar, standing, statusPill } from "./progress.js";

export async function jobView(root, signal, id) {
    root.append(h("h1", {}, "Job"), h("p", { class: "quiet", "aria-busy": "true" }, "Loading…"));
    try {
        const job = await get(`/jobs/${id}`, { signal });
        root.replaceChildren();
        document.title = `${job.name} · difflogic`;
        (job.kind === "train" ? trainingView : followUpView)(root, signal, job);
    } catch (error) {
        if (!signal.aborted) root.replaceChildren(h("h1", {}, "Job"), h("p", { class: "error", role: "alert" }, error.message), h("p", {}, h("a", { href: "#/" }, "All jobs")));
    }
}

// Head and stream, which every kind of job has: the stream brings all that was and all that comes. `parts` follow the job; `handlers` hear its stream.
function follow(signal, job, place, parts, handlers) {
    const say = announcer();
    let stream = null, current = job;

    function changed(now) {
        if (now === null) {
            location.hash = "#/";
            return;
        }
        if (now.id !== job.id || now.version < current.version) return;
        const goesOn = isOver(current) && !isOver(now);
        current = now;
        document.title = `${now.name} · difflogic`;
        parts.forEach((part) => part.update(now));
        say(now, standing(now));
        if (goesOn) begin();
    }

    // Again after a retry: the stream of a job ends with it.
    function begin() {
        stream?.abort();
        stream = new AbortController();
        signal.addEventListener("abort", () => stream.abort(), { once: true });
        const heard = (state, message) => {
            showConnection(state, message);
            if (state === "over" && message) place.show(new Error(message));
        };
        const end = ({ status }) => status === "deleted" && changed(null);
        listen(`/jobs/${job.id}/events`, { job: changed, end, ...handlers }, heard, stream.signal);
    }

    parts.forEach((part) => part.update(job));
    begin();
    return changed;
}

function head(job, place, changed) {
    const title = h("h1", {}, job.name), about = h("p", { class: "quiet" }), reason = h("p", { class: "reason" });
    const parts = [statusPill(job), progressBar(job), actionButtons(job, place, changed), priorityField(job, place, changed)];
    const [pill, bar, buttons, priority] = parts.map(({ element }) => element);
    const element = h("header", { class: "job-head" },
        h("p", { class: "crumb" }, h("a", { href: "#/" }, "Jobs")),
        h("div", { class: "title" }, title, pill), about, reason, bar,
        h("div", { class: "toolbar" }, buttons, priority), place.element);
    const update = (now) => {
        parts.forEach((part) => part.update(now));
        setText(title, now.name);
        setText(about, facts(now));
        reason.hidden = !now.reason;
        setText(reason, now.reason ?? "");
    };
    return { element, update };
}

// The numbers that matter, large.
function figures() {
    const names = ["Soft loss", "Hard loss", "Solved", "Active gates"];
    const values = names.map(() => h("dd", { class: "number" }));
    const element = h("dl", { class: "figures card" }, names.map((name, i) => h("div", {}, h("dt", {}, name), values[i])));
    const update = (job) => {
        const solved = job.population > 1 ? `${job.solved} of ${job.population}` : job.solved ? "yes" : "not yet";
        [loss(job.soft_loss), loss(job.hard_loss), job.hard_loss === null ? "–" : solved, count(job.active_gates)].forEach((text, i) => setText(values[i], text));
    };
    return { element, update };
}

function trainingView(root, signal, job) {
    const place = errorPlace(), rows = new Rows(), plot = curves();
    const automaton = automatonPanel(), gates = gatesPanel(plot.span), numbers = figures();
    const late = (now) => changed(now);
    const top = head(job, place, late);
    const circuit = circuitPanel(job, signal), log = logPanel(job, signal), files = filesPanel(job);
    const table = rowsTable();

    root.append(top.element, numbers.element,
        h("div", { class: "columns" }, automaton.element,
            h("section", { class: "card", "aria-labelledby": "curves-title" }, h("h2", { id: "curves-title" }, "Learning"), plot.element, table.element)),
        gates.element, circuit.element, h("div", { class: "columns even" }, files.element, configPanel(job)), log.element);

    const draw = () => plot.show(...seriesOfOne(rows), rows.last || job.epochs);
    const grown = (found) => {
        rows.add(found);
        draw();
        table.show(rows);
    };
    const census = checkpoints(job, gates, files, place);
    automaton.aimAt(job.config);
    if (job.epoch > 0 && job.status !== "running") automaton.load(job.id).catch(place.show);
    draw();
    const changed = follow(signal, job, place, [top, numbers, circuit, log, census], { rows: grown, frame: automaton.show });
}

// Gates and files, asked for whenever there is a new checkpoint.
function checkpoints(job, gates, files, place) {
    let seen = null;
    async function load() {
        try {
            gates.show(await get(`/jobs/${job.id}/gates`));
        } catch (error) {
            place.show(error);
        }
    }
    return {
        update(now) {
            const state = `${now.saved_epoch} ${now.status}`;
            if (state === seen) return;
            seen = state;
            files.load();
            if (now.saved_epoch > 0) load();
        },
    };
}

// The evaluations as a table, for those who do not see curves.
function rowsTable() {
    const body = h("tbody", {});
    const head = ["Epoch", "Soft loss", "Hard loss", "Wrong on probes", "Undecided gates"].map((name) => h("th", { scope: "col" }, name));
    const element = h("details", {}, h("summary", {}, "The same as a table"),
        h("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": "Evaluations" }, h("table", { class: "rows" }, h("thead", {}, h("tr", {}, head)), body)));
    const at = (list) => new Map(list);
    function show(rows) {
        const best = rows.best;
        if (!element.open || !best) return;
        const [soft, batch, undecided] = [best.soft, best.batch, best.undecided].map(at);
        body.replaceChildren(...best.hard.map(([epoch, wrong]) => h("tr", {}, [count(epoch), loss(soft.get(epoch)), loss(batch.get(epoch)), count(wrong), count(undecided.get(epoch))].map((text) => h("td", { class: "number" }, text)))));
    }
    let last = null;
    element.addEventListener("toggle", () => last && show(last));
    return {
        element,
        show(rows) {
            last = rows;
            show(rows);
        },
    };
}

function followUpView(root, signal, job) {
    const place = errorPlace();
    const top = head(job, place, (now) => changed(now));
    const log = logPanel(job, signal), files = filesPanel(job);
    const source = h("p", {}, "Works on the circuit of ", h("a", { href: `#/jobs/${job.source}` }, "its training"), ".");
    const circuit = job.kind === "simplify" && circuitPanel(job, signal);
    root.append(top.element, ...[job.source && source, circuit?.element, files.element, log.element].filter(Boolean));
    const reload = { update: () => files.load() };
    const changed = follow(signal, job, place, [top, log, reload, circuit].filter(Boolean), {});
}
