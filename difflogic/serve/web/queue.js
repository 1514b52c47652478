// Where the jobs stand that wait: asked for now and then, since it changes with every job that is before them.

import { get } from "./api.js";
import { repeat } from "./dom.js";

const EVERY = 5000;
const MOST = 200; // the server tells of so many at once

const turns = new Map();

// "position 3 in the queue", or "" where nothing is known of it.
export const turnWords = (job) => (job.status === "queued" && (turns.get(job.id) ?? job.words.turn)) || "";

// Keeps the turns of the jobs that `shown()` gives; `update(job)` hears of each whose words may have changed.
export function followTurns(shown, update, signal) {
    async function look() {
        const waiting = shown().filter(({ status }) => status === "queued");
        if (!waiting.length) return;
        const ids = waiting.slice(0, MOST).map(({ id }) => id);
        const found = await get(`/queue?ids=${ids.join(",")}`, { signal }).catch(() => null);
        if (!found) return; // the stream says that the server is away
        const now = new Map(found.waiting.map(({ id, turn }) => [id, turn]));
        for (const id of ids) turns.set(id, now.get(id));
        const still = shown().filter(({ id, status }) => status === "queued" && ids.includes(id));
        still.forEach(update);
    }
    repeat(look, EVERY, signal);
    return look;
}
