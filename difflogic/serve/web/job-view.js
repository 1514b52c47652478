// One job: how it stands, the automaton as it learns, its curves, gates, circuit, log and files.

import { get } from "./api.js";
import { agentView } from "./agent-view.js";
import { automatonPanel } from "./automaton-panel.js";
import { circuitPanel } from "./circuit-panel.js";
import { configPanel } from "./config-panel.js";
import { curves, Rows, seriesOfOne } from "./curves.js";
import { checkpoints } from "./checkpoints.js";
import { h, setText } from "./dom.js";
import { filesPanel } from "./files-panel.js";
import { figures } from "./figures.js";
import { followUpView } from "./follow-up-view.js";
import { follow } from "./follow.js";
import { gatesPanel } from "./gates.js";
import { jobHead } from "./job-head.js";
import { logPanel } from "./log-panel.js";
import { announce, errorPlace, patiently } from "./notices.js";
import { isAgents, standing } from "./progress.js";
import { resultOf } from "./result.js";
import { rowsTable } from "./rows-table.js";

// `shared`: by a link, to be read.
export async function jobView(root, signal, id, _query, _rest, shared = false) {
    const loading = h("p", { class: "quiet", "aria-busy": "true" }, "Loading…");
    const away = (error) => setText(loading, `${error.message} Trying again.`);
    root.append(h("h1", {}, "Job"), loading);
    try {
        const job = await patiently(() => get(`/jobs/${id}`, { signal }), away, signal);
        root.replaceChildren();
        document.title = `${job.name} · difflogic`;
        announce(`${job.name}: ${standing(job)}`);
        (job.kind !== "train" ? followUpView : isAgents(job) ? agentView : trainingView)(root, signal, job, shared);
    } catch (error) {
        if (!signal.aborted)
            root.replaceChildren(
                h("h1", {}, "Job"),
                h("p", { class: "error", role: "alert" }, error.message),
                shared ? "" : h("p", {}, h("a", { href: "#/" }, "All jobs")),
            );
    }
}

function trainingView(root, signal, job, shared) {
    const place = errorPlace(),
        rows = new Rows(),
        plot = curves();
    const automaton = automatonPanel(),
        gates = gatesPanel(plot.span),
        numbers = figures();
    const top = jobHead(job, place, (now) => changed(now), shared);
    const circuit = shared ? null : circuitPanel(job, signal),
        log = logPanel(job, signal),
        files = filesPanel(job);
    const table = rowsTable();
    const tries = h("section", { class: "card", hidden: true, "aria-label": "Attempts" });
    let shown = job;

    root.append(
        top.element,
        numbers.element,
        tries,
        h(
            "div",
            { class: "columns" },
            automaton.element,
            h(
                "section",
                { class: "card", "aria-labelledby": "curves-title" },
                h("h2", { id: "curves-title" }, "Learning"),
                plot.element,
                table.element,
            ),
        ),
        gates.element,
        ...(circuit ? [circuit.element] : []),
        h("div", { class: "columns even" }, files.element, configPanel(job)),
        log.element,
    );

    const draw = () => plot.show(...seriesOfOne(rows), Math.max(rows.last, shown.epoch) || shown.epochs);
    const grown = (found) => {
        rows.add(found);
        draw();
        table.show(rows);
    };
    const census = checkpoints(job, gates, files, place, signal);
    automaton.aimAt(job.config);
    draw();
    const attempts = {
        update(now) {
            const another = now.attempt !== shown.attempt;
            shown = now;
            if (another) {
                rows.clear();
                draw();
            }
            const told = now.attempt > 0 && resultOf(now);
            tries.hidden = !told;
            tries.replaceChildren(...(told ? [h("h2", {}, "Attempts"), told] : []));
        },
    };
    const parts = [attempts, top, numbers, circuit, log, census].filter(Boolean);
    const changed = follow(signal, job, place, parts, { rows: grown, frame: automaton.show }, shared);
}
