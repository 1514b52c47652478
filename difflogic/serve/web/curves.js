// Rows of metrics as curves, for one run or several over each other.

import { Chart } from "./chart.js";
import { h } from "./dom.js";
import { count, loss } from "./format.js";
import { Window } from "./window.js";

const write = {
    tick: (value) => (value >= 1000 ? `${value / 1000}k` : String(Number(value.toPrecision(3)))),
    value: loss,
};
const NEARER = 0.5;

// The rows of one run, by epoch and seed, as they arrive: rows that were seen before change nothing.
export class Rows {
    constructor() {
        this.clear();
    }

    clear() {
        this.seeds = new Map();
        this.last = 0;
    }

    add(rows) {
        for (const row of rows) {
            const seed = row.seed ?? 0;
            if (!this.seeds.has(seed)) this.seeds.set(seed, { soft: [], batch: [], hard: [], undecided: [], epoch: 0 });
            const member = this.seeds.get(seed);
            if (row.epoch <= member.epoch) continue;
            member.epoch = row.epoch;
            this.last = Math.max(this.last, row.epoch);
            for (const [list, value] of [
                ["soft", row.soft_loss],
                ["batch", row.train_hard_loss],
                ["hard", row.hard_loss],
                ["undecided", row.undecided],
            ])
                if (value !== null && value !== undefined) member[list].push([row.epoch, value]);
        }
    }

    // Of a population the one with the lowest hard loss, else soft loss, at the end.
    get best() {
        const rank = ({ hard, soft }) => [hard.at(-1)?.[1] ?? Infinity, soft.at(-1)?.[1] ?? Infinity];
        return [...this.seeds.values()].reduce(
            (best, member) => {
                const [a, b] = [rank(best), rank(member)];
                return b[0] < a[0] || (b[0] === a[0] && b[1] < a[1]) ? member : best;
            },
            [...this.seeds.values()][0],
        );
    }
}

// Two charts over the same epochs, with their buttons: {element, span, show(batchSeries, probeSeries, epochs)}.
export function curves(span = new Window()) {
    const batch = new Chart(span, {
        title: "Loss on the training batch",
        label: "Curves of the soft and the hard loss on the training batch, by epoch.",
        write,
    });
    const probes = new Chart(span, {
        title: "Wrong values on all probes",
        label: "Curve of the hard loss on the probes, by epoch.",
        height: 170,
        write,
    });
    const scale = h("button", { type: "button", "aria-pressed": "true", onclick: toggle }, "Log scale");
    const where = h("output", { class: "quiet number" });
    const tools = h(
        "div",
        { class: "buttons", role: "group", "aria-label": "What the curves show" },
        scale,
        h("button", { type: "button", "aria-label": "Zoom in", onclick: () => span.zoom(NEARER) }, "+"),
        h("button", { type: "button", "aria-label": "Zoom out", onclick: () => span.zoom(1 / NEARER) }, "−"),
        h("button", { type: "button", "aria-label": "Earlier epochs", onclick: () => span.pan(-NEARER) }, "←"),
        h("button", { type: "button", "aria-label": "Later epochs", onclick: () => span.pan(NEARER) }, "→"),
        h("button", { type: "button", onclick: () => span.all() }, "All"),
        where,
    );
    const say = () =>
        (where.textContent =
            span.cursor === null
                ? `epochs ${count(Math.round(span.from))} to ${count(Math.round(span.to))}`
                : `epoch ${count(span.cursor)}`);
    for (const type of ["change", "point"]) span.addEventListener(type, say);

    function toggle() {
        const log = scale.getAttribute("aria-pressed") !== "true";
        scale.setAttribute("aria-pressed", String(log));
        for (const chart of [batch, probes]) chart.use(log ? "log" : "linear");
    }

    return {
        element: h("div", { class: "curves" }, tools, batch.element, probes.element),
        span,
        show(batchSeries, probeSeries, epochs) {
            span.extend(0, Math.max(1, epochs));
            say();
            batch.show(batchSeries);
            probes.show(probeSeries);
        },
    };
}

// The series of one run alone: of a population every member, the best in front.
export function seriesOfOne(rows) {
    const best = rows.best;
    if (!best) return [[], []];
    const others = [...rows.seeds.values()].filter((member) => member !== best);
    const crowd = (list) => {
        if (!others.length) return [];
        const [points, low] = [Math.max, Math.min].map((choose) => envelope(others, list, choose));
        return [{ name: "others", style: "crowd", points, low, spread: true }];
    };
    return [
        [
            ...crowd("soft"),
            { name: "soft", style: "soft", points: best.soft },
            { name: "hard", style: "hard", points: best.batch, dots: true },
        ],
        [
            ...crowd("hard"),
            { name: "wrong", style: "hard", points: best.hard, dots: true },
            { name: "undecided gates", style: "undecided", points: best.undecided },
        ],
    ];
}

// The lowest or highest of several members at each epoch.
function envelope(members, list, choose) {
    const found = new Map();
    for (const member of members)
        for (const [x, y] of member[list]) found.set(x, found.has(x) ? choose(found.get(x), y) : y);
    return [...found].sort((a, b) => a[0] - b[0]);
}

// The series of several runs, each in a colour: soft thin, hard with dots.
export function seriesOfMany(runs) {
    const colour = (index) => `run-${index % 8}`;
    const known = runs.map(({ name, rows }, index) => ({ name, best: rows.best, index })).filter(({ best }) => best);
    return [
        known.flatMap(({ name, best, index }) => [
            { name: `${name}, soft`, style: `${colour(index)} thin`, points: best.soft },
            { name: `${name}, hard`, style: colour(index), points: best.batch, dots: true },
        ]),
        known.map(({ name, best, index }) => ({ name, style: colour(index), points: best.hard, dots: true })),
    ];
}
