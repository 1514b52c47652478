// One job of the list: {element, update(job)}.

import { actionButtons } from "./actions.js";
import { h, setText } from "./dom.js";
import { loss } from "./format.js";
import { errorPlace } from "./notices.js";
import { thumbnail } from "./pixels.js";
import { facts, progressBar, remark, statusPill } from "./progress.js";

const QUICK = ["pause", "resume", "retry", "cancel"];

// `chosen(id, on)`: ticked for comparison; `changed(job)`: by one of its buttons.
export function jobRow(job, chosen, changed) {
    const place = errorPlace();
    const link = h("a", { class: "name", href: `#/jobs/${job.id}` });
    const about = h("p", { class: "quiet" }),
        reason = h("p", { class: "quiet" }),
        numbers = h("p", { class: "losses number" });
    const parts = [statusPill(job), progressBar(job), actionButtons(job, place, changed, QUICK)];
    const [pill, bar, buttons] = parts.map(({ element }) => element);
    const tick = h("input", { type: "checkbox", onchange: () => chosen(job.id, tick.checked) });
    const element = h(
        "li",
        { class: "job", "data-id": job.id },
        thumbnail(job),
        h("div", { class: "what" }, h("div", { class: "title" }, link, pill), about, reason, place.element),
        h("div", { class: "how" }, bar, numbers),
        h(
            "div",
            { class: "acts" },
            buttons,
            job.kind === "train" && h("label", { class: "inline quiet" }, tick, "Compare"),
        ),
    );

    function update(now) {
        parts.forEach((part) => part.update(now));
        setText(link, now.name);
        setText(about, facts(now));
        reason.hidden = !remark(now);
        setText(reason, remark(now));
        numbers.hidden = now.kind !== "train" || now.soft_loss === null;
        setText(numbers, numbersOf(now));
        tick.setAttribute("aria-label", `Compare ${now.name}`);
    }
    update(job);
    return { element, update };
}

function numbersOf(job) {
    const hard = job.solved ? "solved" : `hard ${loss(job.hard_loss)}`;
    return `soft ${loss(job.soft_loss)} · ${hard}`;
}
