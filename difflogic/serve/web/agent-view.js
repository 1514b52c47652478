// How agents learn: their returns over the environment steps.

import { Chart } from "./chart.js";
import { growing, seriesOfAgents } from "./curves.js";
import { card } from "./dom.js";
import { count, loss } from "./format.js";
import { Window } from "./window.js";

// As `learningOfAutomata` of job-view.js.
export function learningOfAgents(job, signal) {
    const span = new Window();
    const chart = new Chart(span, {
        title: "Mean return",
        label: "Curves of the mean return, by environment step.",
        scale: "linear",
        write: { tick: count, value: loss },
    });
    chart.unit = "step";
    const { handlers, update } = growing(job, (rows, last) => {
        span.extend(0, Math.max(1, last));
        span.begins = rows.begins;
        chart.show(seriesOfAgents(rows, job.config.evaluation.threshold));
    }, signal);
    return { element: card("learning", "Learning", chart.element), handlers, update };
}
