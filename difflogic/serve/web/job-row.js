// One job of the list, with the jobs on its circuit below: {element, update(job), shown(), under(rows)}.

import { h, setText } from "./dom.js";
import { plural } from "./format.js";
import { partsOf } from "./job-head.js";
import { errorPlace } from "./notices.js";
import { imageOf } from "./job-image.js";
import { ownerOf, resultOf } from "./progress.js";

const QUICK = ["pause", "resume", "retry", "cancel"];

// `chosen(job, on)` is called at a tick, which `on` sets at first; `changed(job)` after an action.
export function jobRow(job, chosen, on, changed) {
    const place = errorPlace();
    const link = h("a", { class: "name", href: `#/jobs/${job.id}` });
    const { pill, bar, tags, tools, line, reason, about, ...parts } = partsOf(job, place, changed, QUICK);
    const tick = h("input", { type: "checkbox", checked: on, onchange: () => chosen(current, tick.checked) });
    const count = h("summary", {}),
        attempts = h("div", {}),
        list = h("ul", { class: "under" });
    const fold = h("details", { hidden: true }, count, attempts, list);
    const image = imageOf(job);
    let current = job;
    const element = h(
        "li",
        { class: "job", "data-id": job.id },
        h("label", { class: "pick" }, tick),
        image.element,
        h("div", { class: "what" }, h("div", { class: "title" }, link, pill, ownerOf(job)), line, reason, about, tags, place.element),
        h("div", { class: "how" }, bar, tools),
        fold,
    );

    function update(now) {
        current = now;
        parts.update(now);
        setText(link, now.name);
        tick.setAttribute("aria-label", `Choose ${now.name} (${now.id.slice(0, 4)})`);
        image.update(now);
        summarise();
    }

    function summarise() {
        const tried = current.result?.attempts?.length ?? 0;
        const words = [tried > 1 && plural(tried, "attempt"), list.children.length && `${plural(list.children.length, "job")} on its circuit`].filter(Boolean);
        fold.hidden = !words.length;
        setText(count, words.join(", "));
        attempts.replaceChildren((tried > 1 && resultOf(current)) || "");
    }

    update(job);
    return {
        element,
        update,
        shown: () => current,
        // Moves rows under this one; without an argument, returns those under it.
        under(rows) {
            if (!rows) return [...list.children];
            list.append(...rows);
            return summarise();
        },
    };
}
