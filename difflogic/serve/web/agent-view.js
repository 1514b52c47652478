// How agents learn: their returns over the environment steps.

import { Chart } from "./chart.js";
import { envelope } from "./curves.js";
import { card } from "./dom.js";
import { count, loss } from "./format.js";
import { Window } from "./window.js";

// As `learningOfAutomata` of job-view.js.
export function learningOfAgents(job) {
    const span = new Window(),
        returns = new Returns(job.config.evaluation.threshold);
    const chart = new Chart(span, {
        title: "Mean return",
        label: "Curves of the mean return, by environment step.",
        scale: "linear",
        write: { tick: count, value: loss },
    });
    chart.unit = "step";
    const draw = (last) => {
        span.extend(0, Math.max(1, last));
        chart.show(returns.series());
    };
    const grown = (rows) => {
        returns.add(rows);
        draw(returns.last);
    };
    draw(job.epoch || job.epochs);
    return {
        element: card("learning", "Learning", chart.element),
        span,
        handlers: { rows: grown },
        clear() {
            returns.clear();
            draw(job.epochs);
        },
        at() {},
    };
}

// The rows of one run, by steps and seed, as they arrive: rows that were seen before change nothing.
class Returns {
    constructor(threshold) {
        this.threshold = threshold;
        this.clear();
    }

    clear() {
        this.seeds = new Map();
        this.last = 0;
    }

    add(rows) {
        for (const { seed = 0, steps, mean_return: training, score } of rows) {
            if (!this.seeds.has(seed)) this.seeds.set(seed, { training: [], judged: [], last: 0 });
            const agent = this.seeds.get(seed);
            if (steps <= agent.last) continue;
            this.last = agent.last = steps;
            if (training !== null) agent.training.push([steps, training]);
            if (score !== null) agent.judged.push([steps, score]);
        }
    }

    // Of several agents the one whose last score is highest, and what the others reach around it.
    series() {
        const agents = [...this.seeds.values()],
            score = ({ judged }) => judged.at(-1)?.[1] ?? -Infinity;
        if (!agents.length) return [];
        const best = agents.reduce((one, other) => (score(other) > score(one) ? other : one)),
            others = agents.filter((agent) => agent !== best);
        const [points, low] = [Math.max, Math.min].map((choose) => envelope(others, "training", choose));
        return [
            ...(others.length ? [{ name: "others", style: "crowd", points, low, spread: true }] : []),
            { name: "while training", style: "soft", points: best.training },
            { name: "judged", style: "hard", points: best.judged, dots: true },
            ...(this.threshold === undefined
                ? []
                : [{ name: "solved from", style: "undecided", points: [[0, this.threshold], [this.last, this.threshold]] }]),
        ];
    }
}
