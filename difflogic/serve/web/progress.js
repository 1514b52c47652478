// How a job stands: a word, a bar, a line of numbers. `update(job)` changes what is there, and never rebuilds it.

import { session } from "./api.js";
import { h, setText } from "./dom.js";
import { ago, count, duration, loss, rate } from "./format.js";
import { turnWords } from "./queue.js";

export const STATUSES = {
    queued: "Queued",
    running: "Running",
    paused: "Paused",
    done: "Done",
    failed: "Failed",
    cancelled: "Cancelled",
};
export const KINDS = {
    train: "Training",
    sweep: "Sweep",
    simplify: "Simplification",
    prove: "Proof",
    export: "Export",
    evaluate: "Evaluation",
};
const WANTED = { cancel: "Cancelling", pause: "Pausing", requeue: "Moving" };
const PHASES = { starting: "Starting", compiling: "Compiling", saving: "Saving" };

// Whether a configuration is of agents.
export const isPolicy = (config) => config?.kind === "policy";
export const isAgents = (job) => isPolicy(job.config);

// What a training counts.
const unitOf = (job) => (job.kind === "sweep" ? "trials" : isAgents(job) ? "steps" : "epochs");
const counts = (job) => ["train", "sweep"].includes(job.kind);

export const isOver = (job) => ["done", "failed", "cancelled"].includes(job.status);

// What a training that is done came to, by the circuit that it keeps: "solved", "unsolved", or null where that is no
// question.
export function outcome(job) {
    if (job.kind !== "train" || job.status !== "done") return null;
    if (isAgents(job) ? job.score === null || !("threshold" in job.config.evaluation) : job.hard_loss === null) return null;
    return job.solved ? "solved" : "unsolved";
}

const OUTCOMES = { solved: "Solved", unsolved: "Ended unsolved" };

function statusWord(job) {
    if (outcome(job)) return OUTCOMES[outcome(job)];
    if (job.status !== "running") return STATUSES[job.status] ?? job.status;
    return WANTED[job.wanted] ?? PHASES[job.phase] ?? STATUSES.running;
}

export function statusPill(job) {
    const element = h("span", { class: "pill" });
    const update = (now) => {
        element.dataset.status = outcome(now) ?? now.status;
        setText(element, statusWord(now));
    };
    update(job);
    return { element, update };
}

export function progressBar(job) {
    const bar = h("progress", { max: 1, value: 0 });
    const words = h("span", { class: "quiet number" });
    const element = h("div", { class: "progress" }, bar, words);
    const update = (now) => {
        element.hidden = !counts(now);
        bar.max = Math.max(1, now.goal);
        bar.value = now.progress;
        bar.setAttribute("aria-label", `Progress of ${now.name}`);
        bar.dataset.status = outcome(now) ?? now.status;
        setText(words, progressWords(now));
    };
    update(job);
    return { element, update };
}

// Which attempt this is, when all is over the best.
function attempt(job) {
    if (!job.attempt) return [];
    const made = job.result?.attempts?.length;
    if (job.status === "done" && made) return [`attempt ${job.attempt}, the best of ${made}`];
    return [`attempt ${job.attempt}${job.request.until_solved ? "" : ` of at most ${job.request.restarts + 1}`}`];
}

// Of a training with several attempts that goes on: the fewest wrong values of any of them.
function bestSoFar(job) {
    const made = job.result?.attempts ?? [];
    const best = Math.min(...[job.hard_loss, ...made.map(({ wrong }) => wrong)].map((wrong) => wrong ?? Infinity));
    return made.length > 1 && !isOver(job) && Number.isFinite(best) ? [`best so far ${count(best)} wrong`] : [];
}

// The time that a training until it is solved has taken, and its limit.
function used(job) {
    if (!job.request.until_solved) return [];
    const time = duration(job.trained_s);
    return [isOver(job) ? `${time} of training` : `until solved, at most ${job.request.within}, ${time} so far`];
}

function progressWords(job) {
    const parts = [...attempt(job), `${count(job.progress)} of ${count(job.goal)} ${unitOf(job)}`];
    if (job.status === "running" && job.progress_per_s > 0) {
        parts.push(rate(job.progress_per_s, unitOf(job)), `${duration((job.goal - job.progress) / job.progress_per_s)} left`);
    }
    return [...parts, ...bestSoFar(job), ...used(job)].join(" · ");
}

// One sentence without its full stop, for screen readers and titles.
export function standing(job) {
    if (!counts(job)) return statusWord(job);
    const parts = [statusWord(job), ...attempt(job), `${count(job.progress)} of ${count(job.goal)} ${unitOf(job)}`];
    if (job.score !== null && !outcome(job)) parts.push(`mean return ${loss(job.score)}`);
    if (job.hard_loss !== null && !outcome(job)) parts.push(job.solved ? "solved" : `hard loss ${loss(job.hard_loss)}`);
    if (outcome(job) === "unsolved") parts.push(shortfall(job));
    return parts.join(", ");
}

// What the best circuit or agent of a training that ended without a solution lacks.
function shortfall(job) {
    if (isAgents(job)) return `mean return ${loss(job.score)}, below ${loss(job.config.evaluation.threshold)}`;
    if (!job.hard_loss) return "the best circuit is right on its probes, but not on fresh starts";
    return `the best circuit has ${count(job.hard_loss)} wrong${job.compared ? ` of ${count(job.compared)}` : ""}`;
}

// Why it waits, failed, was taken up again, or what it came to; nothing where there is nothing to say.
export function remark(job) {
    if (outcome(job) !== "unsolved") return job.waits_for ?? job.reason ?? "";
    const within = job.request.until_solved ? `NOT solved within ${job.request.within}` : "Ended unsolved";
    return `${within}: ${shortfall(job)}.`;
}

// Whose job it is, where that is somebody else.
export const ownerOf = ({ owner }) =>
    owner !== session().owner && h("span", { class: "owner" }, h("span", { class: "unseen" }, "Owner: "), owner);

export function facts(job) {
    const parts = [isAgents(job) ? "Training of agents" : KINDS[job.kind], job.device ? `on ${job.device}` : `for ${job.engine}`];
    if (job.request.population > 1) parts.push(`${job.request.population} models`);
    if (job.priority) parts.push(`priority ${job.priority > 0 ? "+" : "−"}${Math.abs(job.priority)}`);
    if (job.lost_tries) parts.push(`worker lost ${job.lost_tries === 1 ? "once" : `${job.lost_tries} times`}`);
    parts.push(
        job.ended
            ? `ended ${ago(job.ended)}`
            : job.started
              ? `began ${ago(job.started)}`
              : `submitted ${ago(job.created)}`,
    );
    if (turnWords(job)) parts.push(turnWords(job));
    return parts.join(" · ");
}
