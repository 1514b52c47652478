// Links that open a job to whoever has them: made, shown once, listed, revoked.

import { get, post, remove } from "./api.js";
import { closed } from "./dialogs.js";
import { freshId, h } from "./dom.js";
import { ago } from "./format.js";
import { announce, errorPlace, guarded } from "./notices.js";

const DAYS = [
    ["1", "a day"],
    ["7", "a week"],
    ["30", "30 days"],
    ["365", "a year"],
    ["", "ever"],
];

// Resolves to the job when the dialog is closed.
export function shared(job) {
    const id = freshId("dialog"),
        place = errorPlace();
    const label = h("input", { name: "label", maxlength: 100, placeholder: "anybody", autocomplete: "off" });
    const options = DAYS.map(([value, text]) => h("option", { value }, text));
    const days = h("select", { name: "days", value: "30" }, options);
    const make = h("button", { class: "primary" }, "Make a link");
    const list = h("ul", { class: "links", "aria-label": "Links" });
    const made = h("div", { class: "made" });
    const form = h(
        "form",
        { class: "grid-fields", onsubmit: create },
        h("label", { class: "field" }, "For whom", label),
        h("label", { class: "field" }, "The link is valid for", days),
        h("div", { class: "buttons" }, make),
    );
    const dialog = h(
        "dialog",
        { class: "wide", "aria-labelledby": id },
        h("h2", { id }, "Share this job"),
        h("p", { class: "quiet" }, "Anyone with the link can view this job, its pictures and its files, but cannot change it."),
        form,
        made,
        place.element,
        list,
        h("div", { class: "buttons end" }, h("button", { type: "button", onclick: () => dialog.close() }, "Close")),
    );

    async function create(event) {
        event.preventDefault();
        const wish = { label: label.value.trim() || null, days: days.value ? Number(days.value) : null };
        const found = await guarded(make, place, () => post(`/jobs/${job.id}/shares`, wish));
        if (!found) return;
        show(new URL(found.path, location.href).href);
        load();
    }

    // Nobody can find the link out again, so it stays until another one is made.
    function show(link) {
        const field = h("input", { readonly: true, value: link, "aria-label": "The link" });
        const copy = h("button", { type: "button", onclick: taken }, "Copy");
        async function taken() {
            field.select();
            // Without TLS there is no clipboard: the link is selected, to be copied by hand.
            await navigator.clipboard?.writeText(link).then(
                () => announce("Copied"),
                () => {},
            );
        }
        made.replaceChildren(
            h("div", { class: "buttons" }, field, copy),
            h("p", { class: "hint" }, "Copy it now. It will not be shown again."),
        );
        field.select();
    }

    async function load() {
        try {
            const { shares } = await get(`/jobs/${job.id}/shares`);
            list.replaceChildren(...shares.map(row));
        } catch (error) {
            place.show(error);
        }
    }

    function row(share) {
        const name = share.label || "anybody";
        const until = share.expires ? `until ${share.expires.slice(0, 10)}` : "for ever";
        const button = h(
            "button",
            { type: "button", "aria-label": `Revoke the link for ${name} (${share.id.slice(0, 4)})`, onclick: revoke },
            "Revoke",
        );
        async function revoke() {
            await guarded(button, place, () => remove(`/jobs/${job.id}/shares/${share.id}`));
            load();
        }
        return h(
            "li",
            {},
            h("span", {}, `For ${name} `, h("span", { class: "quiet" }, `made ${ago(share.created)}, ${until}`)),
            button,
        );
    }

    load();
    return closed(dialog).then(() => job);
}
