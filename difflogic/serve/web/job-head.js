// The status and the actions of a job, for the top of its page and for its row of the list.

import { actionButtons } from "./actions.js";
import { h, setText } from "./dom.js";
import { facts, lineOf, ownerOf, progressBar, statusPill } from "./progress.js";

// Elements by name, filled by update(job); `actions` are those of `actionButtons` after the job.
export function partsOf(job, ...actions) {
    const line = h("p", { class: "standing" }),
        reason = h("p", { class: "reason quiet" }),
        about = h("p", { class: "quiet" });
    const parts = { pill: statusPill(job), bar: progressBar(), tags: tagList(), tools: actionButtons(job, ...actions) };
    const elements = Object.fromEntries(Object.entries(parts).map(([name, { element }]) => [name, element]));
    function update(now) {
        for (const part of Object.values(parts)) part.update(now);
        setText(line, lineOf(now));
        setText(about, facts(now));
        reason.hidden = !now.words.remark || now.words.standing.includes(now.words.remark.replace(/\.$/, ""));
        setText(reason, now.words.remark);
    }
    return { ...elements, line, reason, about, update };
}

// The tags of a job.
function tagList() {
    const element = h("ul", { class: "tags", "aria-label": "Tags" });
    let shown = null;
    function update({ tags }) {
        const now = tags.join(",");
        if (now === shown) return;
        shown = now;
        element.hidden = !tags.length;
        element.replaceChildren(...tags.map((tag) => h("li", {}, tag)));
    }
    return { element, update };
}

// {element, update(job)}; `changed(job or null)` is called after an action; errors are shown at `place`.
export function jobHead(job, place, changed) {
    const title = h("h1", {});
    const proof = h("p", { class: "proof", hidden: true }); // its sentence becomes the headline
    const { pill, bar, tags, tools, line, reason, about, update } = partsOf(job, place, changed);
    const element = h(
        "header",
        { class: "job-head" },
        h("p", { class: "crumb" }, h("a", { href: "#/" }, "Jobs")),
        h("div", { class: "headline" }, h("div", { class: "title" }, title, pill, ownerOf(job)), tools),
        proof,
        line,
        reason,
        bar,
        tags,
        about,
        place.element,
    );
    return {
        element,
        update(now) {
            setText(title, now.name);
            update(now);
        },
        proved(text) {
            proof.hidden = false;
            setText(proof, `${text}.`);
        },
    };
}
