// The log of the workers of a job, loaded while it is open.

import { get } from "./api.js";
import { h, repeat, setText } from "./dom.js";
import { fold } from "./fold.js";

const MOST = 1 << 15; // bytes
const EVERY = 3000;

export function logPanel(job, signal) {
    const text = h("pre", { class: "log scroll", tabindex: "0", role: "group", "aria-label": "Log" });
    const { element, look } = fold("log-of", "Log", load, text);

    async function load() {
        const { text: found } = await get(`/jobs/${job.id}/log?tail=${MOST}`, { signal });
        const atEnd = text.scrollTop + text.clientHeight >= text.scrollHeight - 4;
        setText(text, found || "The log is still empty.");
        if (atEnd) text.scrollTop = text.scrollHeight;
    }

    repeat(look, EVERY, signal);
    return element;
}
