// One job of the list: {element, update(job), shown()}.

import { actionButtons } from "./actions.js";
import { h, setText } from "./dom.js";
import { loss } from "./format.js";
import { errorPlace } from "./notices.js";
import { thumbnail } from "./pixels.js";
import { facts, isAgents, ownerOf, progressBar, statusPill } from "./progress.js";
import { tagList } from "./tags.js";

const QUICK = ["pause", "resume", "retry", "cancel"];

// `chosen(job, on)`: ticked, which it is from the start where `on`; `changed(job)`: by one of its buttons.
export function jobRow(job, chosen, on, changed) {
    const place = errorPlace();
    const link = h("a", { class: "name", href: `#/jobs/${job.id}` });
    const about = h("p", { class: "quiet" }),
        reason = h("p", { class: "quiet" }),
        numbers = h("p", { class: "losses number" });
    const parts = [statusPill(job), progressBar(job), actionButtons(job, place, changed, QUICK), tagList(job)];
    const [pill, bar, buttons, tags] = parts.map(({ element }) => element);
    const tick = h("input", { type: "checkbox", checked: on, onchange: () => chosen(current, tick.checked) });
    let current = job;
    const element = h(
        "li",
        { class: "job", "data-id": job.id },
        thumbnail(job),
        h("div", { class: "what" }, h("div", { class: "title" }, link, pill, ownerOf(job)), about, reason, tags, place.element),
        h("div", { class: "how" }, bar, numbers),
        h(
            "div",
            { class: "acts" },
            buttons,
            h("label", { class: "inline quiet" }, tick, "Choose"),
        ),
    );

    function update(now) {
        current = now;
        parts.forEach((part) => part.update(now));
        setText(link, now.name);
        setText(about, facts(now));
        reason.hidden = !now.words.remark;
        setText(reason, now.words.remark);
        numbers.hidden = now.kind !== "train" || (now.soft_loss ?? now.score) === null;
        setText(numbers, numbersOf(now));
        tick.setAttribute("aria-label", `Choose ${now.name} (${now.id.slice(0, 4)})`);
    }
    update(job);
    return { element, update, shown: () => current };
}

function numbersOf(job) {
    if (isAgents(job)) return `mean return ${loss(job.score)}${job.solved ? " · solved" : ""}`;
    const hard = job.solved ? "solved" : `hard ${loss(job.hard_loss)}`;
    return `soft ${loss(job.soft_loss)} · ${hard}`;
}
