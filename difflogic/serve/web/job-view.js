// One job: how it stands, the automaton as it learns, its curves, gates, circuit, log and files.

import { get } from "./api.js";
import { learningOfAgents } from "./agent-view.js";
import { automatonPanel } from "./automaton-panel.js";
import { circuitPanel } from "./circuit-panel.js";
import { configPanel } from "./config-panel.js";
import { curves, Rows, seriesOfOne } from "./curves.js";
import { checkpoints } from "./checkpoints.js";
import { card, fold, h, setText } from "./dom.js";
import { filesPanel } from "./files-panel.js";
import { followUpView } from "./follow-up-view.js";
import { follow } from "./follow.js";
import { gatesPanel } from "./gates.js";
import { jobHead } from "./job-head.js";
import { logPanel } from "./log-panel.js";
import { announce, errorPlace, patiently } from "./notices.js";
import { isAgents } from "./progress.js";
import { resultOf } from "./result.js";
import { rowsTable } from "./rows-table.js";

export async function jobView(root, signal, id) {
    const loading = h("p", { class: "quiet", "aria-busy": "true" }, "Loading…");
    const away = (error) => setText(loading, `${error.message} Trying again.`);
    root.append(h("h1", {}, "Job"), loading);
    try {
        const job = await patiently(() => get(`/jobs/${id}`, { signal }), away, signal);
        root.replaceChildren();
        document.title = `${job.name} · difflogic`;
        announce(`${job.name}: ${job.words.standing}`);
        (job.kind !== "train" ? followUpView : trainingView)(root, signal, job);
    } catch (error) {
        if (!signal.aborted)
            root.replaceChildren(
                h("h1", {}, "Job"),
                h("p", { class: "error", role: "alert" }, error.message),
                h("p", {}, h("a", { href: "#/" }, "All jobs")),
            );
    }
}

function trainingView(root, signal, job) {
    const place = errorPlace(),
        learning = isAgents(job) ? learningOfAgents(job) : learningOfAutomata(job),
        gates = gatesPanel(learning.span);
    const circuit = circuitPanel(job, signal);
    const top = jobHead(job, place, (now) => {
        changed(now);
        circuit.refresh();
    });
    const log = logPanel(job, signal),
        files = filesPanel(job);
    const tries = fold("tries", "Attempts", h("div", {}));
    let shown = job;
    tries.hidden = true;

    root.append(top.element, circuit.element, learning.element, h("div", { class: "folds" }, tries, gates.element, configPanel(job), files.element, log.element));

    const census = checkpoints(job, gates, files, place, signal);
    const attempts = {
        update(now) {
            if (now.attempt !== shown.attempt) learning.clear();
            shown = now;
            learning.at(now);
            const told = now.attempt > 0 && resultOf(now);
            tries.hidden = !told;
            tries.lastChild.replaceChildren(told || "");
        },
    };
    const parts = [attempts, top, circuit, log, census];
    const changed = follow(signal, job, place, parts, learning.handlers);
}

// {element, span, handlers: of the stream, clear(): another attempt, at(job): as it stands}
function learningOfAutomata(job) {
    const rows = new Rows(),
        plot = curves(),
        automaton = automatonPanel(),
        table = rowsTable();
    let shown = job;
    const draw = () => plot.show(...seriesOfOne(rows), Math.max(rows.last, shown.progress) || shown.goal);
    const grown = (found) => {
        rows.add(found);
        draw();
        table.show(rows);
    };
    automaton.aimAt(job.config);
    draw();
    return {
        element: h("div", { class: "columns even" }, automaton.element, card("learning", "Learning", plot.element, table.element)),
        span: plot.span,
        handlers: { rows: grown, frame: automaton.show },
        clear() {
            rows.clear();
            draw();
        },
        at(now) {
            shown = now;
        },
    };
}
