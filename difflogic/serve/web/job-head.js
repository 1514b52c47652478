// The top of a job's page: what it is, how far it is in one line, what can be done with it.

import { actionButtons } from "./actions.js";
import { h, setText } from "./dom.js";
import { facts, lineOf, ownerOf, progressBar, statusPill } from "./progress.js";
import { tagList } from "./tags.js";

// {element, update(job)}; `changed(job or null)` hears what an action came to, errors are shown at `place`.
export function jobHead(job, place, changed) {
    const title = h("h1", {}, job.name),
        line = h("p", { class: "standing" }),
        reason = h("p", { class: "reason quiet" }),
        about = h("p", { class: "quiet" });
    const parts = [statusPill(job), progressBar(job), tagList(job), actionButtons(job, place, changed)];
    const [pill, bar, tags, tools] = parts.map(({ element }) => element);
    const element = h(
        "header",
        { class: "job-head" },
        h("p", { class: "crumb" }, h("a", { href: "#/" }, "Jobs")),
        h("div", { class: "headline" }, h("div", { class: "title" }, title, pill, ownerOf(job)), tools),
        line,
        reason,
        bar,
        tags,
        about,
        place.element,
    );
    const update = (now) => {
        parts.forEach((part) => part.update(now));
        setText(title, now.name);
        setText(line, lineOf(now));
        setText(about, facts(now));
        reason.hidden = !now.words.remark || now.words.standing.includes(now.words.remark.replace(/\.$/, ""));
        setText(reason, now.words.remark);
        bar.hidden = bar.hidden || now.status === "done";
    };
    return { element, update };
}
