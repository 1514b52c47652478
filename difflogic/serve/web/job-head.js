// The top of a job's page: what it is, how it stands, what can be done with it.

import { actionButtons, priorityField } from "./actions.js";
import { h, setText } from "./dom.js";
import { facts, ownerOf, progressBar, statusPill } from "./progress.js";
import { tagList } from "./tags.js";

// {element, update(job)}; `changed(job or null)` hears what an action came to, errors are shown at `place`.
export function jobHead(job, place, changed) {
    const title = h("h1", {}, job.name),
        about = h("p", { class: "quiet" }),
        reason = h("p", { class: "reason" });
    const parts = [
        statusPill(job),
        progressBar(job),
        tagList(job),
        actionButtons(job, place, changed),
        priorityField(job, place, changed),
    ];
    const [pill, bar, tags, ...tools] = parts.map(({ element }) => element);
    const element = h(
        "header",
        { class: "job-head" },
        h("p", { class: "crumb" }, h("a", { href: "#/" }, "Jobs")),
        h("div", { class: "title" }, title, pill, ownerOf(job)),
        about,
        reason,
        tags,
        bar,
        h("div", { class: "toolbar" }, tools),
        place.element,
    );
    const update = (now) => {
        parts.forEach((part) => part.update(now));
        setText(title, now.name);
        setText(about, facts(now));
        reason.hidden = !now.words.remark;
        setText(reason, now.words.remark);
    };
    return { element, update };
}
