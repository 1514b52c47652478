// The ticked jobs of the list, and actions on all of them.

import { ACTIONS } from "./actions.js";
import { patch, remove } from "./api.js";
import { asked, confirmed, tagsOf } from "./dialogs.js";
import { buttonGroup, h, setText } from "./dom.js";
import { plural } from "./format.js";
import { guarded } from "./notices.js";

const TOGETHER = ["pause", "resume", "retry", "cancel", "tag", "delete"];
const MOST_COMPARED = 8;

// {element, has(id), choose(job, on), update(job), keep(rows by id)}; `changed(job or null, id)` is called for each
// job after an action.
export function selection(place, changed) {
    const chosen = new Map();
    const words = h("span", { class: "quiet" });
    const compare = h("a", { class: "button primary" });
    const buttons = new Map(ACTIONS.filter(({ name }) => TOGETHER.includes(name)).map((action) => [action, button(action)]));
    const element = buttonGroup("Actions for the chosen jobs", words, compare, ...buttons.values());
    element.classList.add("selection");
    element.hidden = true;
    const fitting = (action) => [...chosen.values()].filter(action.when);

    function button(action) {
        const control = h("button", { type: "button", class: action.danger ? "danger" : "", onclick: act });
        async function act() {
            const jobs = fitting(action);
            const work = await workOn(action, jobs);
            if (!work) return;
            await guarded(control, place, async () => {
                for (const job of jobs) {
                    // Each job is reported at once: if one is refused, those before it have changed.
                    changed(await work(job), job.id);
                }
            });
            refresh();
        }
        return control;
    }

    // The work on each job, after at most one question; falsy if the user declines.
    async function workOn(action, jobs) {
        if (action.name === "delete") {
            const text = `${jobs.map(({ name }) => name).join(", ")}: removed from the server with all files. This cannot be undone.`;
            return (await confirmed(`Delete ${plural(jobs.length, "job")}?`, text, "Delete")) && (({ id }) => remove(`/jobs/${id}`));
        }
        if (action.name !== "tag") return action.run;
        const text = await asked(`Tag ${plural(jobs.length, "job")}`, "Tags to add, separated by commas", "", "Add");
        const added = tagsOf(text ?? "");
        return added.length && (({ id, tags }) => patch(`/jobs/${id}`, { tags: [...tags, ...added] }));
    }

    function refresh() {
        element.hidden = chosen.size === 0;
        setText(words, `${plural(chosen.size, "job")} chosen`);
        const runs = [...chosen.values()].filter(({ kind }) => kind === "train").slice(0, MOST_COMPARED);
        compare.hidden = !runs.length;
        compare.href = `#/compare/${runs.map(({ id }) => id).join(",")}`;
        setText(compare, `Compare ${plural(runs.length, "run")}`);
        for (const [action, control] of buttons) {
            const { length } = fitting(action);
            control.hidden = !length;
            setText(control, `${action.together ?? action.label} ${plural(length, "job")}`);
        }
    }

    return {
        element,
        has: (id) => chosen.has(id),
        choose(job, on) {
            if (on) chosen.set(job.id, job);
            else chosen.delete(job.id);
            refresh();
        },
        update(job) {
            if (chosen.has(job.id)) chosen.set(job.id, job);
            refresh();
        },
        keep(rows) {
            for (const id of chosen.keys()) if (!rows.has(id)) chosen.delete(id);
            refresh();
        },
    };
}
