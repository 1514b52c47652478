// The event stream of a job: its past and its coming events.

import { listen } from "./events.js";
import { announcer, showConnection } from "./notices.js";
import { isOver } from "./progress.js";
import { followTurns } from "./queue.js";

// `parts` follow the job by `update(job)`, `handlers` take the stream's other events. Returns a function to call with the
// job after an action, or with null if it is deleted.
export function follow(signal, job, place, parts, handlers) {
    const say = announcer();
    let stream = null,
        current = job;
    const update = () => parts.forEach((part) => part.update(current));

    function changed(now) {
        if (now === null) {
            // No redirect while the user goes elsewhere: the address changes before the view.
            if (location.hash.startsWith(`#/jobs/${job.id}`)) location.hash = "#/";
            return;
        }
        if (now.id !== job.id || now.version < current.version) return;
        const goesOn = isOver(current) && !isOver(now);
        current = now;
        document.title = `${now.name} · difflogic`;
        update();
        say(now, now.words.standing);
        if (goesOn) begin();
    }

    // Also called after a retry, because the stream ends with the job.
    function begin() {
        stream?.abort();
        stream = new AbortController();
        let away = false;
        const onState = (state, message) => {
            showConnection(state, message);
            // Requests failed while the server was away, and are repeated.
            if (state === "live" && away) {
                place.clear();
                parts.forEach((part) => part.refresh?.());
            }
            away = state === "waiting" || (away && state !== "live");
            if (state === "over" && message) place.show(new Error(message));
        };
        const end = ({ status }) => status === "deleted" && changed(null);
        listen(`/jobs/${job.id}/events`, { job: changed, end, ...handlers }, onState, AbortSignal.any([stream.signal, signal]));
    }

    update();
    followTurns(() => [current], update, signal);
    begin();
    return changed;
}
