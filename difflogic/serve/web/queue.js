// Positions of waiting jobs in the queue, polled because they change with every job before them.

import { get } from "./api.js";
import { repeat } from "./dom.js";

const EVERY = 5000;
const MOST = 200; // ids in one request

const turns = new Map();

// "position 3 in the queue", or "" if it is unknown.
export const turnWords = (job) => (job.status === "queued" && (turns.get(job.id) ?? job.words.turn)) || "";

// Updates the positions of the jobs that `shown()` returns, and calls `update(job)` for each that waits.
export function followTurns(shown, update, signal) {
    async function look() {
        const waiting = shown().filter(({ status }) => status === "queued");
        if (!waiting.length) return;
        const ids = waiting.slice(0, MOST).map(({ id }) => id);
        const reply = await get(`/queue?ids=${ids.join(",")}`, { signal }).catch(() => null);
        if (!reply) return; // the stream reports that the server is away
        const now = new Map(reply.waiting.map(({ id, turn }) => [id, turn]));
        for (const id of ids) turns.set(id, now.get(id));
        shown().filter(({ id, status }) => status === "queued" && ids.includes(id)).forEach(update);
    }
    repeat(look, EVERY, signal);
    return look;
}
