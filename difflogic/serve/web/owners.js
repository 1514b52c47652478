// The owner filter of operators, and the disk space that an owner's jobs take.

import { get, session } from "./api.js";
import { h, offerNames, setText } from "./dom.js";
import { bytes, plural } from "./format.js";

// `chosen`: called when another owner is chosen.
// {filter: a <select>, words: a sentence, look(): loads again}
export function owners(chosen, place, signal) {
    const filter = h("select", { name: "owner", "aria-label": "Owner", hidden: true, onchange: pick }, h("option", { value: "" }, "Every owner"));
    const words = h("p", { class: "quiet", hidden: true });
    let known = [];

    function pick() {
        show();
        chosen();
    }

    async function look() {
        const reply = await get("/owners", { signal }).catch(place.show);
        if (!reply) return;
        known = reply.owners;
        offerNames(filter, "Every owner", known.map(({ owner }) => owner), 2);
        show();
    }

    // For the chosen owner or, without a choice, for the user; for an operator without a choice, the sum over all owners.
    function show() {
        const everybody = known.length > 1 && !filter.value;
        const shown = everybody ? known : known.filter(({ owner }) => owner === (filter.value || session().owner));
        const sum = (values) => values.reduce((total, value) => total + value, 0);
        const jobs = sum(shown.flatMap((owner) => Object.values(owner.jobs)));
        const quota = everybody ? null : (shown[0]?.quota ?? null);
        words.hidden = !shown.length || (quota === null && known.length < 2);
        const subject = everybody ? plural(known.length, "owner") : filter.value || "You";
        const has = everybody || !filter.value ? "have" : "has";
        const of = quota === null ? "" : ` of ${bytes(quota)}`;
        const taken = bytes(sum(shown.map((owner) => owner.bytes)));
        setText(words, `${subject} ${has} ${plural(jobs, "job")}, which take ${taken}${of}.`);
    }
    return { filter, words, look };
}
