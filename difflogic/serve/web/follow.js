// A job's stream, which brings all that was and all that comes.

import { listen } from "./events.js";
import { announcer, showConnection } from "./notices.js";
import { isOver } from "./progress.js";
import { followTurns } from "./queue.js";

// `parts` follow the job by `update(job)`, `handlers` hear the stream's other events. The function that comes back is to
// be called with the job as it is after an action, or with null where it is gone.
export function follow(signal, job, place, parts, handlers) {
    const say = announcer();
    let stream = null,
        current = job;

    function changed(now) {
        if (now === null) {
            // Whoever is on the way elsewhere is left alone: the address changes before the view does.
            if (location.hash.startsWith(`#/jobs/${job.id}`)) location.hash = "#/";
            return;
        }
        if (now.id !== job.id || now.version < current.version) return;
        const goesOn = isOver(current) && !isOver(now);
        current = now;
        document.title = `${now.name} · difflogic`;
        parts.forEach((part) => part.update(now));
        say(now, now.words.standing);
        if (goesOn) begin();
    }

    // Again after a retry: the stream of a job ends with it.
    function begin() {
        stream?.abort();
        stream = new AbortController();
        let away = false;
        const heard = (state, message) => {
            showConnection(state, message);
            // What was asked for while the server was away failed, and is asked for again.
            if (state === "live" && away) {
                place.clear();
                parts.forEach((part) => part.refresh?.());
            }
            away = state === "waiting" || (away && state !== "live");
            if (state === "over" && message) place.show(new Error(message));
        };
        const end = ({ status }) => status === "deleted" && changed(null);
        listen(`/jobs/${job.id}/events`, { job: changed, end, ...handlers }, heard, AbortSignal.any([stream.signal, signal]));
    }

    parts.forEach((part) => part.update(job));
    const shown = () => parts.forEach((part) => part.update(current));
    followTurns(() => [current], shown, signal);
    begin();
    return changed;
}
