// Cards that are opened by a click, and ask for what they show while they are open.

import { calmly, h } from "./dom.js";
import { errorPlace } from "./notices.js";

const EVERY = 3000;

// {element, look(): asks anew}; `name` is its class, `load` fills it.
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

// What looks anew whenever a job has another checkpoint, of which a small one has several a second: update(job).
export function atCheckpoints(look, signal) {
    let seen = "";
    const again = calmly(look, EVERY, signal);
    return ({ attempt, progress, kind, saved_progress: saved, status }) => {
        const state = [attempt, kind === "sweep" ? progress : saved, status].join();
        if (state !== seen) again();
        seen = state;
    };
}
