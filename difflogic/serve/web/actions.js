// Actions on a job, by its state: three main ones as buttons, the rest in a menu.

import { address, get, patch, post, remove } from "./api.js";
import { answered, asked, confirmed, tagsOf } from "./dialogs.js";
import { h } from "./dom.js";
import { guarded } from "./notices.js";
import { isAgents, isOver } from "./progress.js";

const VARIED = ["random", "boards"]; // initial states that differ each time
const USUAL = new Set(["svg", "html", "verilog"]);

const isDone = (job) => job.status === "done"; // failed and cancelled jobs have one main action: try again
const waits = (job) => job.status === "running" && job.wanted !== null;
const training = (job) => job.kind === "train";
const wanted = (job) => training(job) || job.kind === "sweep"; // created by the form
const hasCircuit = (job) => (training(job) && !isAgents(job) ? job.saved_progress > 0 : ["train", "sweep", "simplify", "build"].includes(job.kind) && job.status === "done" && job.result?.best !== null);
const canShrink = (job) => hasCircuit(job) && !["simplify", "build"].includes(job.kind); // a built circuit is simplified already
const canTest = (job) => hasCircuit(job) && wanted(job);
const canProve = (job) => (job.kind === "simplify" ? hasCircuit(job) : canTest(job) && !isAgents(job));
const canBuild = (job) => job.can_build && hasCircuit(job) && isOver(job);
const follow = (job, what, body = {}) => post(`/jobs/${job.id}/${what}`, body).then(() => job);

// `when(job)`: whether the action is offered; `main(job)`: whether it is a button. `run(job)` resolves to the job after the
// action, or to null if the job is deleted.
export const ACTIONS = [
    { name: "resume", label: "Resume", primary: true, when: (job) => job.status === "paused", run: (job) => post(`/jobs/${job.id}/resume`), main: () => true },
    { name: "retry", label: "Try again", primary: true, when: (job) => ["failed", "cancelled"].includes(job.status), run: (job) => post(`/jobs/${job.id}/retry`), main: () => true },
    { name: "pause", label: "Pause", when: (job) => ["queued", "running"].includes(job.status) && !waits(job), run: (job) => post(`/jobs/${job.id}/pause`), main: () => true },
    { name: "cancel", label: "Stop", when: (job) => ["queued", "running", "paused"].includes(job.status) && job.wanted !== "cancel", run: (job) => post(`/jobs/${job.id}/cancel`), main: () => true },
    { name: "simplify", label: "Simplify and prove", primary: true, when: canShrink, run: simplified, main: (job) => isDone(job) && job.words.outcome !== "unsolved" },
    { name: "build", label: "Build without training", primary: true, title: "Build a circuit for its task without training", when: canBuild, run: (job) => follow(job, "build"), main: (job) => job.words.outcome === "unsolved" },
    { name: "export", label: "Download and export", when: hasCircuit, run: exported, main: isDone },
    { name: "edit", label: "Change and run again", primary: true, when: wanted, run: (job) => go(`#/new?from=${job.id}`, job), main: isDone },
    { name: "compare", label: "Compare", when: (job) => training(job) && !isAgents(job), run: (job) => go(`#/compare/${job.id}`, job), main: (job) => job.words.outcome === "unsolved" },
    { name: "clone", label: "Run again", when: wanted, run: (job) => created(job, "clone") },
    { name: "smaller", label: "Simplify further…", title: "Preserve only a part of what the circuit does", when: canShrink, run: simplifiedFurther },
    { name: "prove", label: "Prove", when: canProve, run: (job) => follow(job, "prove") },
    { name: "evaluate", label: "Test", when: canTest, run: (job) => follow(job, "evaluate", { quick: true }) },
    { name: "evaluate-long", label: "Test for long", when: canTest, run: (job) => follow(job, "evaluate", { quick: false }) },
    { name: "harden", label: "Converge its gates", title: "Continue the training until every gate has converged", when: (job) => training(job) && !isAgents(job) && job.saved_progress > 0 && isOver(job), run: (job) => created(job, "harden") },
    { name: "rename", label: "Rename", when: () => true, run: (job) => edited(job, ["Rename the job", "Name", job.name, "Rename"], (name) => ({ name })) },
    { name: "priority", label: "Priority", when: (job) => !isOver(job), run: (job) => edited(job, ["Priority of the job", "From -10 to 10: jobs with a higher priority start first", job.priority, "Save"], (text) => ({ priority: Number(text) })) },
    { name: "tag", label: "Tags", together: "Tag", when: () => true, run: (job) => edited(job, ["Tags of the job", "Tags, separated by commas", job.tags.join(", "), "Save", false], (text) => ({ tags: tagsOf(text) })) },
    { name: "delete", label: "Delete", danger: true, when: (job) => job.status !== "running", run: deleted },
];
const MAIN = 3;

async function go(hash, job) {
    location.hash = hash;
    return job;
}

// Simplifies, which proves the smaller circuit equal; for a training, its task is proved too.
async function simplified(job) {
    await follow(job, "simplify");
    return isAgents(job) || !training(job) ? job : follow(job, "prove");
}

async function simplifiedFurther(job) {
    const { task, train } = job.config,
        isFixed = task && !VARIED.includes(task.start),
        inStep = isFixed && (train.fire_rate ?? 1) === 1; // otherwise its own grid has several rollouts
    const size = isFixed ? `${task.width}x${task.height}` : null;
    const choices = [
        isFixed && ["its rollout from its own initial state, on any grid", { from_start: true }],
        inStep && ["its rollout from its own initial state on its own grid", { from_start: true, size }],
        ["its task", { task: true }],
    ].filter(Boolean);
    const inputs = choices.map(([words], i) => h("label", { class: "check" }, h("input", { type: "radio", name: "keep", value: i, checked: i === 0 }), words));
    const choice = await answered("Simplify, and preserve only", inputs, "Simplify", () => inputs.findIndex((input) => input.firstChild.checked));
    return choice === undefined ? job : follow(job, "simplify", choices[choice][1]);
}

async function exported(job) {
    const { formats } = await get("/formats");
    const boxes = formats.map(({ name, about }) =>
        h("label", { class: "check" }, h("input", { type: "checkbox", value: name, checked: USUAL.has(name) }), h("span", {}, h("b", {}, name), " ", about)),
    );
    const chosen = () => boxes.map(({ firstChild }) => firstChild).filter(({ checked }) => checked).map(({ value }) => value);
    const all = h("a", { class: "button", href: address(`/jobs/${job.id}/archive`), download: true }, "Download all files");
    const names = await answered("Download and export", [all, h("fieldset", { class: "formats" }, h("legend", {}, "The circuit for other programs"), boxes)], "Export", chosen);
    return names?.length ? follow(job, "export", { formats: names }) : job;
}

// Opens the job that is created from this one.
const created = async (job, what) => go(`#/jobs/${(await post(`/jobs/${job.id}/${what}`)).id}`, job);

// Changes a job by the answer to a question, which `asked` takes as arguments.
async function edited(job, question, change) {
    const text = await asked(...question);
    return text === undefined ? job : patch(`/jobs/${job.id}`, change(text));
}

async function deleted(job) {
    const text = `${job.name} and all its files are removed from the server. This cannot be undone.`;
    if (!(await confirmed("Delete this job?", text, "Delete"))) return job;
    await remove(`/jobs/${job.id}`);
    return null;
}

// A group of buttons that follows the job: {element, update(job)}. `only`: names of the actions, by default all, with a menu;
// `changed(job or null)` is called after an action.
export function actionButtons(job, place, changed, only = null) {
    const offered = ACTIONS.filter(({ name }) => !only || only.includes(name));
    const buttons = new Map(offered.map((action) => [action, button(action)]));
    const element = h("div", { class: "buttons acts", role: "group", tabindex: "-1", "aria-label": `Actions for ${job.name}` });
    const list = h("div", { class: "menu-list" }),
        menu = h("details", { class: "menu" }, h("summary", { class: "button" }, "More"), list);
    let current = job,
        shown = "";
    // The menu closes when the focus leaves it.
    element.addEventListener("focusout", ({ relatedTarget }) => relatedTarget && !menu.contains(relatedTarget) && (menu.open = false));
    menu.addEventListener("keydown", ({ key }) => {
        if (key !== "Escape") return;
        menu.open = false;
        menu.firstChild.focus();
    });

    function button(action) {
        const control = h("button", { type: "button", "data-action": action.name, title: action.title, onclick: act }, action.label);
        async function act() {
            menu.open = false;
            const after = await guarded(control, place, () => action.run(current));
            if (after === undefined) return;
            const hadFocus = control.isConnected && document.activeElement === document.body;
            changed(after);
            if ((hadFocus || !control.checkVisibility()) && element.isConnected && !document.querySelector("dialog")) element.focus(); // not on the next button, which does something else
        }
        return control;
    }

    function update(now) {
        current = now;
        const fitting = offered.filter(({ when }) => when(now)),
            main = only ? fitting : fitting.filter((action) => action.main?.(now)).slice(0, MAIN);
        const state = `${main.map(({ name }) => name)} ${fitting.map(({ name }) => name)}`;
        if (state === shown) return;
        shown = state;
        const rest = fitting.filter((action) => !main.includes(action));
        for (const [action, control] of buttons) {
            control.className = action === main.find(({ primary }) => primary) ? "primary" : action.danger ? "danger" : "";
            // A list has many of each button: a screen reader reads the name of the job too.
            if (only) control.setAttribute("aria-label", `${action.label} ${now.name} (${now.id.slice(0, 4)})`);
        }
        list.replaceChildren(...rest.map((action) => buttons.get(action)));
        element.replaceChildren(...main.map((action) => buttons.get(action)), ...(rest.length ? [menu] : []));
    }
    update(job);
    return { element, update };
}
