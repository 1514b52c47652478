// How a job stands: a word, a bar, a line of numbers. `update(job)` changes what is there, and never rebuilds it.

import { h, setText } from "./dom.js";
import { ago, count, duration, loss, rate } from "./format.js";

export const STATUSES = {
    queued: "Queued",
    running: "Running",
    paused: "Paused",
    done: "Done",
    failed: "Failed",
    cancelled: "Cancelled",
};
const WANTED = { cancel: "Cancelling", pause: "Pausing", requeue: "Moving" };
const PHASES = { starting: "Starting", compiling: "Compiling", saving: "Saving" };

export const isOver = (job) => ["done", "failed", "cancelled"].includes(job.status);

function statusWord(job) {
    if (job.status !== "running") return STATUSES[job.status] ?? job.status;
    return WANTED[job.wanted] ?? PHASES[job.phase] ?? STATUSES.running;
}

export function statusPill(job) {
    const element = h("span", { class: "pill" });
    const update = (now) => {
        element.dataset.status = now.status;
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
        element.hidden = now.kind !== "train";
        bar.max = Math.max(1, now.epochs);
        bar.value = now.epoch;
        bar.setAttribute("aria-label", `Epochs of ${now.name}`);
        bar.dataset.status = now.status;
        setText(words, progressWords(now));
    };
    update(job);
    return { element, update };
}

// Of restarts: which attempt this is, when all is over the best.
function attempt(job) {
    if (!job.attempt) return [];
    const made = job.result?.attempts?.length,
        among = job.status === "done" && made ? `, the best of ${made}` : ` of at most ${job.restarts + 1}`;
    return [`attempt ${job.attempt}${among}`];
}

function progressWords(job) {
    const parts = [...attempt(job), `${count(job.epoch)} of ${count(job.epochs)} epochs`];
    if (job.status === "running" && job.epochs_per_s > 0) {
        parts.push(rate(job.epochs_per_s), `${duration((job.epochs - job.epoch) / job.epochs_per_s)} left`);
    }
    return parts.join(" · ");
}

// One sentence without its full stop, for screen readers and titles.
export function standing(job) {
    if (job.kind !== "train") return statusWord(job);
    const parts = [statusWord(job), ...attempt(job), `${count(job.epoch)} of ${count(job.epochs)} epochs`];
    if (job.hard_loss !== null) parts.push(job.solved ? "solved" : `hard loss ${loss(job.hard_loss)}`);
    return parts.join(", ");
}

// Why it waits, failed, or was taken up again; nothing where there is nothing to say.
export const remark = (job) => job.waits_for ?? job.reason ?? "";

export function facts(job) {
    const kinds = { train: "Training", simplify: "Simplification", export: "Export", evaluate: "Evaluation" };
    const parts = [kinds[job.kind], job.device ? `on ${job.device}` : `for ${job.engine}`];
    if (job.population > 1) parts.push(`${job.population} models`);
    if (job.priority) parts.push(`priority ${job.priority > 0 ? "+" : "−"}${Math.abs(job.priority)}`);
    if (job.attempts) parts.push(`worker lost ${job.attempts === 1 ? "once" : `${job.attempts} times`}`);
    parts.push(
        job.ended
            ? `ended ${ago(job.ended)}`
            : job.started
              ? `began ${ago(job.started)}`
              : `submitted ${ago(job.created)}`,
    );
    return parts.join(" · ");
}
