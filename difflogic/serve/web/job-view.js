// One job: its status, result and circuit, and in folds its gates, configuration, files and log.

import { get } from "./api.js";
import { automatonPanel } from "./automaton-panel.js";
import { Chart } from "./chart.js";
import { circuitPanel } from "./circuit-panel.js";
import { configPanel } from "./config-panel.js";
import { curves, growing, seriesOfAgents, seriesOfOne } from "./curves.js";
import { card, h, setText } from "./dom.js";
import { filesPanel, logPanel } from "./files-panel.js";
import { fold } from "./fold.js";
import { follow } from "./follow.js";
import { count, loss } from "./format.js";
import { gatesPanel } from "./gates.js";
import { jobHead } from "./job-head.js";
import { announce, errorPlace, patiently } from "./notices.js";
import { isAgents, isOver, isTable, resultOf } from "./progress.js";
import { sweepPanel } from "./sweep-panel.js";
import { Window } from "./window.js";

export async function jobView(root, signal, id) {
    const loading = h("p", { class: "quiet", "aria-busy": "true" }, "Loading…");
    const away = (error) => setText(loading, `${error.message} Trying again.`);
    root.append(h("h1", {}, "Job"), loading);
    try {
        const job = await patiently(() => get(`/jobs/${id}`, { signal }), away, signal);
        root.replaceChildren();
        document.title = `${job.name} · difflogic`;
        announce(`${job.name}: ${job.words.standing}`);
        show(root, signal, job);
    } catch (error) {
        if (signal.aborted) return;
        const words = h("p", { class: "error", role: "alert" }, error.message);
        root.replaceChildren(h("h1", {}, "Job"), words, h("p", {}, h("a", { href: "#/" }, "All jobs")));
    }
}

// Parts that this kind of job does not have are null.
function show(root, signal, job) {
    const of = (...kinds) => kinds.includes(job.kind);
    const place = errorPlace(),
        files = filesPanel(job, signal);
    const learning = of("train") ? (isAgents(job) ? learningOfAgents : learningOfAutomata)(job, signal) : null,
        gates = learning && gatesPanel(job, signal),
        trials = of("sweep") ? sweepPanel(job, signal) : null,
        circuit = of("train", "simplify", "build", "sweep") ? circuitPanel(job, signal, { alive: (isAlive) => learning?.besideAlive?.(isAlive), proved: (text) => top.proved(text) }) : null;
    const result = resultPanel(Boolean(learning));
    const top = jobHead(job, place, (now) => {
        changed(now);
        circuit?.refresh();
    });
    const source = job.source && !learning ? h("p", {}, "Works on the circuit of ", h("a", { href: `#/jobs/${job.source}` }, "its source job"), ".") : null;
    const folds = [learning && result.element, gates?.element, (learning ?? trials) && configPanel(job), files.element, logPanel(job, signal)];
    // A training shows its solution first, another job its result.
    const body = learning ? [circuit, learning] : [trials, result, circuit];
    root.append(...[top.element, source, ...body.map((part) => part?.element), h("div", { class: "folds" }, folds)].filter(Boolean));
    // A job that ended before it was trained has no curves.
    const begun = { update: (now) => learning && (learning.element.hidden = isOver(now) && !now.progress && !now.attempt) };
    const changed = follow(signal, job, place, [result, learning, begun, top, circuit, trials, gates, files].filter(Boolean), learning?.handlers ?? {});
}

// The result of a job, or the attempts of a training in a fold: {element, update(job)}.
function resultPanel(isTraining) {
    const words = h("div", {});
    const element = isTraining ? fold("tries", "Attempts", () => {}, words).element : card("result", "Result", words);
    return {
        element,
        update(now) {
            const result = isTraining && !now.attempt ? null : resultOf(now);
            element.hidden = !result;
            words.replaceChildren(result ?? "");
        },
    };
}

// {element, handlers of the stream, update(job), besideAlive(isAlive): hides the automaton next to a living page}
function learningOfAutomata(job, signal) {
    const plot = curves(),
        automaton = automatonPanel(job.config);
    const { handlers, update } = growing(job, (rows, last) => plot.show(...seriesOfOne(rows), last, rows.begins), signal);
    const element = h("div", { class: "columns even" }, automaton.element, card("learning", "Learning", plot.element));
    function besideAlive(isAlive) {
        automaton.element.hidden = isAlive;
        element.classList.toggle("even", !isAlive);
        element.classList.toggle("columns", !isAlive);
    }
    return { element, handlers: { ...handlers, frame: automaton.show }, update, besideAlive };
}

// Returns of agents over environment steps, or the accuracy of a classifier over rows; otherwise as `learningOfAutomata`.
function learningOfAgents(job, signal) {
    const span = new Window(),
        isRows = isTable(job.config);
    const chart = new Chart(span, {
        title: isRows ? "Accuracy" : "Mean return",
        label: isRows ? "Curve of the accuracy, by row." : "Curves of the mean return, by environment step.",
        scale: "linear",
        write: isRows ? { tick: (share) => `${Math.round(100 * share)} %`, value: (share) => `${loss(100 * share)} %` } : { tick: count, value: loss },
    });
    chart.unit = isRows ? "row" : "step";
    const { handlers, update } = growing(job, (rows, last) => {
        span.extend(0, Math.max(1, last));
        span.begins = rows.begins;
        chart.show(seriesOfAgents(rows, job.config.evaluation.threshold));
    }, signal);
    return { element: card("learning", "Learning", chart.element), handlers, update };
}
