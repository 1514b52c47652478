// Cards that open by a click, and load their content only while they are open.

import { h, throttle } from "./dom.js";
import { errorPlace } from "./notices.js";

const EVERY = 3000;

// {element, look(): loads again}; `name`: its class; `load` fills it.
export function fold(name, title, load, ...children) {
    const place = errorPlace();
    const element = h("details", { class: `card fold ${name}` }, h("summary", {}, h("h2", {}, title)), place.element, children);
    async function look() {
        if (!element.open) return;
        try {
            await load();
            place.clear();
        } catch (error) {
            place.show(error);
        }
    }
    element.addEventListener("toggle", look);
    return { element, look };
}

// Returns update(job), which calls `look` at each new checkpoint, at most every few seconds: small jobs save several a second.
export function atCheckpoints(look, signal) {
    let seen = "";
    const again = throttle(look, EVERY, signal);
    return ({ attempt, progress, kind, saved_progress: saved, status }) => {
        const state = [attempt, kind === "sweep" ? progress : saved, status].join();
        if (state !== seen) again();
        seen = state;
    };
}
