// What the workers of a job wrote, read when it is looked at.

import { get } from "./api.js";
import { fold, h, repeat, setText } from "./dom.js";
import { errorPlace } from "./notices.js";

const MOST = 1 << 15; // bytes
const EVERY = 3000;

export function logPanel(job, signal) {
    const place = errorPlace();
    const text = h("pre", { class: "log scroll", tabindex: "0", role: "group", "aria-label": "Log" });
    const element = fold("log-of", "Log", place.element, text);
    let current = job,
        looking = null;

    async function load() {
        try {
            const { text: found } = await get(`/jobs/${job.id}/log?tail=${MOST}`, { signal });
            const atEnd = text.scrollTop + text.clientHeight >= text.scrollHeight - 4;
            setText(text, found || "The log is still empty.");
            if (atEnd) text.scrollTop = text.scrollHeight;
            place.clear();
        } catch (error) {
            place.show(error);
        }
    }

    element.addEventListener("toggle", () => {
        looking?.abort();
        if (!element.open) return;
        looking = new AbortController();
        repeat(load, EVERY, AbortSignal.any([looking.signal, signal]));
    });

    return {
        element,
        update(now) {
            const ended = current.status === "running" && now.status !== "running";
            current = now;
            if (ended && element.open) load();
        },
    };
}
