// What can be done with a job, by its state: the buttons, and what they do.

import { get, patch, post, remove } from "./api.js";
import { asked, confirmed } from "./dialogs.js";
import { h } from "./dom.js";
import { guarded } from "./notices.js";
import { isAgents, isOver } from "./progress.js";
import { tagsOf } from "./tags.js";

const waits = (job) => job.status === "running" && job.wanted !== null;
const training = (job) => job.kind === "train";
const wanted = (job) => training(job) || job.kind === "sweep"; // by the form

// In the order shown. `when` says for which jobs; `run` resolves to the job as it is then, or to null where it is gone.
export const ACTIONS = [
    {
        name: "pause",
        label: "Pause",
        when: (job) => ["queued", "running"].includes(job.status) && !waits(job),
        run: (job) => post(`/jobs/${job.id}/pause`),
    },
    {
        name: "resume",
        label: "Resume",
        primary: true,
        when: (job) => job.status === "paused",
        run: (job) => post(`/jobs/${job.id}/resume`),
    },
    {
        name: "retry",
        label: "Retry",
        primary: true,
        when: (job) => ["failed", "cancelled"].includes(job.status),
        run: (job) => post(`/jobs/${job.id}/retry`),
    },
    {
        name: "cancel",
        label: "Cancel",
        when: (job) => ["queued", "running", "paused"].includes(job.status) && job.wanted !== "cancel",
        run: (job) => post(`/jobs/${job.id}/cancel`),
    },
    { name: "clone", label: "Run again", when: wanted, run: cloned },
    {
        name: "harden",
        label: "Harden",
        title: "Continue training its circuit until every gate is decided",
        when: (job) => training(job) && !isAgents(job) && job.saved_progress > 0 && isOver(job),
        run: hardened,
    },
    { name: "edit", label: "Edit a copy", when: wanted, run: (job) => go(`#/new?from=${job.id}`, job) },
    { name: "compare", label: "Compare", when: (job) => training(job) && !isAgents(job), run: (job) => go(`#/compare/${job.id}`, job) },
    { name: "rename", label: "Rename", when: () => true, run: renamed },
    { name: "tag", label: "Tags", together: "Tag", when: () => true, run: tagged },
    { name: "delete", label: "Delete", danger: true, when: (job) => job.status !== "running", run: deleted },
];

async function go(hash, job) {
    location.hash = hash;
    return job;
}

async function hardened(job) {
    const made = await post(`/jobs/${job.id}/harden`);
    return go(`#/jobs/${made.id}`, job);
}

async function cloned(job) {
    const copy = await post(`/jobs/${job.id}/clone`);
    return go(`#/jobs/${copy.id}`, job);
}

async function renamed(job) {
    const name = await asked("Rename the job", "Name", job.name, "Rename");
    return name ? patch(`/jobs/${job.id}`, { name }) : job;
}

async function tagged(job) {
    const text = await asked("Tags of the job", "Tags, separated by commas", job.tags.join(", "), "Save", false);
    return text === undefined ? job : patch(`/jobs/${job.id}`, { tags: tagsOf(text) });
}

async function deleted(job) {
    const text = `${job.name} and all its files are removed from the server. This cannot be undone.`;
    if (!(await confirmed("Delete this job?", text, "Delete"))) return job;
    await remove(`/jobs/${job.id}`);
    return null;
}

// A group of buttons that follows the job: {element, update(job)}. `only`: names; `changed(job or null)` hears the outcome.
export function actionButtons(job, place, changed, only = null) {
    const offered = ACTIONS.filter(({ name }) => !only || only.includes(name));
    const buttons = new Map(offered.map((action) => [action, button(action)]));
    const element = h(
        "div",
        { class: "buttons", role: "group", tabindex: "-1", "aria-label": `Actions for ${job.name}` },
        ...buttons.values(),
    );
    let current = job;

    function button(action) {
        const made = h(
            "button",
            {
                type: "button",
                class: action.primary ? "primary" : action.danger ? "danger" : "",
                "data-action": action.name,
                title: action.title,
                onclick: act,
            },
            action.label,
        );
        async function act() {
            const after = await guarded(made, place, () => action.run(current));
            if (after === undefined) return;
            changed(after);
            if (made.hidden && made.isConnected) element.focus(); // not on the next button, which does something else
        }
        return made;
    }

    function update(now) {
        current = now;
        for (const [action, made] of buttons) {
            made.hidden = !action.when(now);
            // In a list there are many of each: a screen reader says of which job.
            if (only) made.setAttribute("aria-label", `${action.label} ${now.name} (${now.id.slice(0, 4)})`);
        }
    }
    update(job);
    return { element, update };
}

// A field for the job's priority: {element, update(job)}.
export function priorityField(job, place, changed) {
    const input = h("input", { type: "number", min: -10, max: 10, step: 1, value: job.priority, onchange: save });
    async function save() {
        const after = await guarded(input, place, () => patch(`/jobs/${job.id}`, { priority: Number(input.value) }));
        if (after) changed(after);
        else input.value = (await get(`/jobs/${job.id}`)).priority;
    }
    const update = (now) => {
        if (document.activeElement !== input) input.value = now.priority;
    };
    return { element: h("label", { class: "inline" }, "Priority ", input), update };
}
