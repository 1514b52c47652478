// How agents learn: their returns over the environment steps.

import { Chart } from "./chart.js";
import { Rows, seriesOfAgents } from "./curves.js";
import { card } from "./dom.js";
import { count, loss } from "./format.js";
import { Window } from "./window.js";

// As `learningOfAutomata` of job-view.js.
export function learningOfAgents(job) {
    const span = new Window(),
        rows = new Rows();
    const chart = new Chart(span, {
        title: "Mean return",
        label: "Curves of the mean return, by environment step.",
        scale: "linear",
        write: { tick: count, value: loss },
    });
    chart.unit = "step";
    const draw = (last) => {
        span.extend(0, Math.max(1, last));
        chart.show(seriesOfAgents(rows, job.config.evaluation.threshold));
    };
    const grown = (found) => {
        rows.add(found);
        draw(rows.last);
    };
    draw(job.progress || job.goal);
    return {
        element: card("learning", "Learning", chart.element),
        span,
        handlers: { rows: grown },
        clear() {
            rows.clear();
            draw(job.goal);
        },
        at() {},
    };
}
