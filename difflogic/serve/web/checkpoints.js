// What a training has at each checkpoint: {update(job), refresh}.

import { get } from "./api.js";
import { calmly } from "./dom.js";

const EVERY = 3000;

// Gates and files, asked for when there is a new checkpoint, of which a small job has several a second.
export function checkpoints(job, gates, files, place, signal) {
    let seen = null,
        saved = 0;
    const look = calmly(
        () => {
            files.load();
            if (saved > 0) load();
        },
        EVERY,
        signal,
    );
    async function load() {
        const asked = seen;
        try {
            const found = await get(`/jobs/${job.id}/gates`);
            if (asked === seen) gates.show(found); // else it is asked for again, and this may be another attempt's
        } catch (error) {
            place.show(error);
        }
    }
    return {
        update(now) {
            const state = `${now.attempt} ${now.saved_progress} ${now.status}`;
            if (state === seen) return;
            seen = state;
            saved = now.saved_progress;
            look();
        },
        refresh: look,
    };
}
