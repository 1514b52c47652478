// Rows of metrics as curves, for one run or several in one chart.

import { get } from "./api.js";
import { Chart } from "./chart.js";
import { buttonGroup, h, inline } from "./dom.js";
import { count, loss } from "./format.js";
import { isOver } from "./progress.js";
import { smoothed } from "./scale.js";
import { Window } from "./window.js";

const write = { tick: (value) => (value >= 1000 ? `${value / 1000}k` : String(Number(value.toPrecision(3)))), value: loss };
const MOST_ROWS = 10_000; // of an earlier attempt
const SMOOTH = [1, 10, 50, 200];

// The rows of one run by model, as they arrive; an epoch (a step of agents) that arrives again is ignored.
export class Rows {
    constructor() {
        this.members = new Map();
        this.begins = []; // first epoch of each attempt but the first
        this.last = 0;
        this.begin();
    }

    // The rows of another attempt follow those before it.
    begin() {
        if (this.last) this.begins.push(this.last);
        this.offset = this.last;
        this.places = new Map(); // of seeds, which differ between attempts
    }

    add(rows) {
        for (const row of rows) {
            const seed = row.seed ?? 0;
            if (!this.places.has(seed)) this.places.set(seed, this.places.size);
            const place = this.places.get(seed);
            if (!this.members.has(place)) this.members.set(place, fresh());
            const member = this.members.get(place),
                epoch = this.offset + (row.epoch ?? row.steps);
            if (epoch <= member.epoch) continue;
            member.epoch = epoch;
            member.seconds.set(epoch, row.elapsed_s);
            this.last = Math.max(this.last, epoch);
            for (const [list, column] of Object.entries(COLUMNS)) {
                const value = row[column];
                if (value !== null && value !== undefined) member[list].push([epoch, value]);
            }
        }
    }

    // The member with the highest score or, of automata, the lowest hard loss and then soft loss, at the end.
    get best() {
        const last = (list) => list.at(-1)?.[1] ?? Infinity;
        const rank = ({ evaluated, hard, soft }) => (evaluated.length ? [-last(evaluated), 0] : [last(hard), last(soft)]);
        const order = ([a, b], [c, d]) => a - c || b - d;
        return [...this.members.values()].sort((one, other) => order(rank(one), rank(other)))[0];
    }
}

// The lists of points of a member, and their columns in the rows.
const COLUMNS = { soft: "soft_loss", batch: "train_hard_loss", hard: "hard_loss", undecided: "undecided", training: "mean_return", evaluated: "score" };
const fresh = () => ({ ...Object.fromEntries(Object.keys(COLUMNS).map((list) => [list, []])), seconds: new Map(), epoch: 0 });

// The rows of all attempts of a job as they come, one attempt after the other, with `draw(rows, last)` at each change:
// {handlers, update(job)}. The stream brings those of the attempt that the job is in.
export function growing(job, draw, signal) {
    const attempts = new Map();
    let shown = null,
        isWhole = false;
    function drawn() {
        const all = new Rows();
        for (const number of [...attempts.keys()].sort((a, b) => a - b)) {
            all.begin();
            all.add(attempts.get(number));
        }
        draw(all, Math.max(all.last, shown.progress) || shown.goal);
    }
    async function fetched(number) {
        attempts.set(number, []);
        const { rows } = await get(`/jobs/${job.id}/metrics?attempt=${number}&limit=${MOST_ROWS}`, { signal });
        if (shown.attempt === number && !isWhole) return;
        attempts.set(number, rows);
        drawn();
    }
    function update(now) {
        // At the end all rows are fetched: the stream brings one attempt, and may end before the last rows of another.
        const tries = now.result?.attempts ?? [];
        const isEnd = isOver(now) && tries.length > 0;
        const isOther = now.attempt !== shown?.attempt || isEnd !== isWhole;
        if (isEnd && !isWhole) attempts.clear();
        else if (isOther) attempts.set(now.attempt, []);
        [shown, isWhole] = [now, isEnd];
        for (const { number } of tries) if (!attempts.has(number)) fetched(number).catch(() => attempts.delete(number));
        if (isOther) drawn();
    }
    return {
        handlers: {
            rows(rows) {
                if (isWhole) return;
                attempts.get(shown.attempt).push(...rows);
                drawn();
            },
        },
        update,
    };
}

// Two charts over the same epochs, with their buttons: {element, show(batchSeries, testSeries, epochs, begins), count(unit)}.
export function curves() {
    const span = new Window();
    let unit = "epoch";
    const batch = new Chart(span, {
        title: "Loss of the training batch",
        label: "Curves of the soft and the hard loss in training, by epoch.",
        write,
    });
    const tests = new Chart(span, {
        title: "Wrong cells of the evaluation grids",
        label: "Curve of the wrong cells of the evaluation grids, by epoch.",
        height: 170,
        write,
    });
    const scale = h("button", { type: "button", "aria-pressed": "true", onclick: toggle }, "Log scale");
    const smooth = h("select", { onchange: draw }, SMOOTH.map((width) => h("option", { value: width }, width === 1 ? "nothing" : `${width} epochs`)));
    const where = h("output", { class: "quiet number" });
    const all = h("button", { type: "button", onclick: () => span.all() }, "Show all");
    const tools = buttonGroup("Display of the curves", scale, inline("Smooth over ", smooth), all);
    const say = () => {
        const range = `${unit}s ${count(Math.round(span.from))} to ${count(Math.round(span.to))}`;
        where.textContent = span.cursor === null ? range : `${unit} ${count(span.cursor)}`;
    };
    for (const type of ["change", "point"]) span.addEventListener(type, say);

    function toggle() {
        const log = scale.getAttribute("aria-pressed") !== "true";
        scale.setAttribute("aria-pressed", String(log));
        for (const chart of [batch, tests]) chart.use(log ? "log" : "linear");
    }

    // Lines without dots have a value for each epoch: these can be smoothed.
    const drawn = (line) => (line.dots || line.low ? line : { ...line, points: smoothed(line.points, Number(smooth.value)) });
    let shown = [[], []];
    function draw() {
        batch.show(shown[0].map(drawn));
        tests.show(shown[1].map(drawn));
    }

    return {
        element: h("div", { class: "curves" }, h("details", { class: "adjust" }, h("summary", {}, where), tools), batch.element, tests.element),
        show(batchSeries, testSeries, last, begins = []) {
            span.begins = begins;
            span.extend(0, Math.max(1, last));
            say();
            shown = [batchSeries, testSeries];
            draw();
        },
        // Sets the unit of the axis: "epoch" or "second".
        count(what) {
            unit = batch.unit = tests.unit = what;
            for (const option of [...smooth.options].slice(1)) option.textContent = `${option.value} ${what}s`;
            say();
        },
    };
}

// The series of one run: the best member in front of all others.
export function seriesOfOne(rows) {
    const best = rows.best;
    if (!best) return [[], []];
    return [
        [
            ...crowd(rows, "soft"),
            { name: "soft loss", style: "soft", points: best.soft },
            { name: "hard loss", style: "hard", points: best.batch, dots: true },
        ],
        [
            ...crowd(rows, "hard"),
            { name: "wrong", style: "hard", points: best.hard, dots: true },
            { name: "unconverged gates", style: "undecided", points: best.undecided },
        ],
    ];
}

// The returns of agents, the best member in front, and the threshold of a solution if there is one.
export function seriesOfAgents(rows, threshold) {
    const best = rows.best;
    if (!best) return [];
    return [
        ...crowd(rows, "training"),
        { name: "while training", style: "soft", points: best.training },
        { name: "in tests", style: "hard", points: best.evaluated, dots: true },
        ...(threshold === undefined ? [] : [{ name: "solved from", style: "undecided", points: [[0, threshold], [rows.last, threshold]] }]),
    ];
}

// All members but the best, as a band.
function crowd(rows, list) {
    const others = [...rows.members.values()].filter((member) => member !== rows.best);
    if (!others.length) return [];
    const [points, low] = [Math.max, Math.min].map((choose) => envelope(others, list, choose));
    return [{ name: "others", style: "crowd", points, low, spread: true }];
}

// The lowest or highest of several members at each epoch.
function envelope(members, list, choose) {
    const extremes = new Map();
    for (const member of members)
        for (const [x, y] of member[list]) extremes.set(x, extremes.has(x) ? choose(extremes.get(x), y) : y);
    return [...extremes].sort((a, b) => a[0] - b[0]);
}

// Metrics by which runs are compared, and the lines that they draw.
export const METRICS = { "soft and hard loss": ["soft", "batch"], "soft loss": ["soft"], "hard loss": ["batch"], "unconverged gates": ["undecided"] };

// The series of several runs, each in a colour and with one entry in the legend: soft thin, hard with dots; `unit` as for
// `curves`. Those hidden have none.
export function seriesOfMany(runs, metric, unit) {
    const known = runs
        .map((run, index) => ({ ...run, best: run.rows.best, style: `run-${index}` }))
        .filter(({ best, hidden }) => best && !hidden);
    const along = (best, list) => (unit === "epoch" ? list : list.map(([epoch, y]) => [best.seconds.get(epoch), y]));
    return [
        known.flatMap(({ name, best, style }) =>
            METRICS[metric].map((list, index) => ({
                name: index ? `${name}, hard loss` : name,
                isUnnamed: index > 0,
                style: list === "soft" ? `${style} thin` : style,
                points: along(best, best[list]),
                dots: list === "batch",
            })),
        ),
        known.map(({ name, best, style }) => ({ name, style, points: along(best, best.hard), dots: true })),
    ];
}
