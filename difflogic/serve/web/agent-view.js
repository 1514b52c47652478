// Learning curves: returns of agents over environment steps, or the accuracy of a classifier over rows.

import { Chart } from "./chart.js";
import { growing, seriesOfAgents } from "./curves.js";
import { card } from "./dom.js";
import { count, loss } from "./format.js";
import { isTable } from "./progress.js";
import { Window } from "./window.js";

// As `learningOfAutomata` of job-view.js.
export function learningOfAgents(job, signal) {
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
