// The status of a job as a pill, a bar and a line of facts, and its result, in the server's words. `update(job)` changes
// elements in place.

import { session } from "./api.js";
import { h, setText, tableRow } from "./dom.js";
import { ago } from "./format.js";
import { turnWords } from "./queue.js";

export const STATUSES = { queued: "Queued", running: "Running", paused: "Paused", done: "Done", failed: "Failed", cancelled: "Cancelled" };
export const KINDS = { train: "Training", sweep: "Sweep", simplify: "Simplification", build: "Circuit without training", prove: "Proof", export: "Export", evaluate: "Test" };
// Whether a configuration is of a classifier, or of a classifier or agents.
export const isTable = (config) => config?.kind === "classifier";
export const isPolicy = (config) => config?.kind === "policy" || isTable(config);
export const isAgents = (job) => isPolicy(job.config);

export const isOver = (job) => ["done", "failed", "cancelled"].includes(job.status);

// "solved", "unsolved" or the status, which sets the colour of a job.
const mark = ({ words, status }) => words.outcome ?? status;

export function statusPill(job) {
    const element = h("span", { class: "pill" });
    const update = (now) => {
        element.dataset.status = mark(now);
        setText(element, now.words.state);
    };
    update(job);
    return { element, update };
}

// The line of words next to the pill, without the state that the pill shows.
export function lineOf({ words: { state, standing } }) {
    const rest = standing.startsWith(`${state}: `) ? standing.slice(state.length + 2) : standing === state ? "" : standing;
    return rest && rest[0].toUpperCase() + rest.slice(1);
}

export function progressBar() {
    const bar = h("progress", { max: 1, value: 0 });
    const words = h("span", { class: "quiet number" });
    const element = h("div", { class: "progress" }, bar, words);
    const update = (now) => {
        element.hidden = !now.words.progress || now.status === "done";
        bar.max = Math.max(1, now.goal);
        bar.value = now.progress;
        bar.setAttribute("aria-label", `Progress of ${now.name}`);
        bar.dataset.status = mark(now);
        const pace = now.words.pace.split(", ").filter((part) => !now.words.standing.includes(part)); // shown above
        setText(words, [now.words.progress, pace.join(", ")].filter(Boolean).join(" · "));
    };
    return { element, update };
}

// The owner of a job, if it is another user.
export const ownerOf = ({ owner }) =>
    owner !== session().owner && h("span", { class: "owner" }, h("span", { class: "unseen" }, "Owner: "), owner);

export function facts(job) {
    const parts = [isTable(job.config) ? "Training of a classifier" : isAgents(job) ? "Training of agents" : KINDS[job.kind], job.device ? `on ${job.device}` : `for ${job.engine}`];
    if (job.request.population > 1) parts.push(`${job.request.population} models`);
    if (job.priority) parts.push(`priority ${job.priority > 0 ? "+" : "−"}${Math.abs(job.priority)}`);
    if (job.lost_tries) parts.push(`worker lost ${job.lost_tries === 1 ? "once" : `${job.lost_tries} times`}`);
    parts.push(job.ended ? `ended ${ago(job.ended)}` : job.started ? `began ${ago(job.started)}` : `submitted ${ago(job.created)}`);
    if (job.status === "done" && job.words.progress) parts.push(job.words.progress);
    if (turnWords(job)) parts.push(turnWords(job));
    return parts.join(" · ");
}

// The result of a post-processing job, in words or as a table, or of a training's attempts; null if there is none.
export function resultOf({ result, words }) {
    if (!result?.measures) return words.results.length ? h("ul", { class: "results" }, words.results.map((text) => h("li", {}, text))) : null;
    const rows = Object.entries(result.measures).map(([name, text]) => tableRow(name.replaceAll("-", " "), text));
    return h("table", { class: "measures" }, h("tbody", {}, rows));
}
