// Server-sent events over fetch. Unlike EventSource it reports why a stream ended, resumes with Last-Event-ID after any
// pause, and leaves the browser's few connections to visible pages.

import { open } from "./api.js";
import { pause } from "./dom.js";

const FIRST_WAIT = 500;
const LONGEST_WAIT = 10_000;
const SILENCE = 40_000; // the server sends a comment every 15 s

// Calls handlers[event](data) for each event, and onState("live" | "waiting" | "asleep" | "over", message) on the way.
// Ends after the event `end`, after a refusal by the server (the message is its sentence), or with the signal.
// `always`: also while the page is hidden.
export async function listen(path, handlers, onState, signal, always = false) {
    const unseen = () => document.hidden && !always;
    const place = { last: "", over: false };
    let wait = FIRST_WAIT;

    // One connection, until it ends, falls silent, or the page is hidden.
    async function once() {
        const stop = new AbortController(),
            either = AbortSignal.any([stop.signal, signal]);
        const abort = () => stop.abort();
        let silence = setTimeout(abort, SILENCE);
        document.addEventListener("visibilitychange", () => unseen() && abort(), { signal: stop.signal });
        try {
            const headers = { Accept: "text/event-stream", ...(place.last && { "Last-Event-ID": place.last }) };
            const response = await open(path, { headers, signal: either });
            wait = FIRST_WAIT;
            onState("live", "");
            const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
            const parse = parser(place, handlers);
            while (!place.over) {
                const { value, done } = await reader.read();
                if (done) return;
                clearTimeout(silence);
                silence = setTimeout(abort, SILENCE);
                parse(value);
            }
        } finally {
            clearTimeout(silence);
            abort();
        }
    }

    while (!signal.aborted && !place.over) {
        if (unseen()) await untilSeen(onState, signal);
        if (signal.aborted) return;
        try {
            await once();
        } catch (error) {
            if (signal.aborted) return;
            if (error.status >= 400 && error.status < 500 && error.status !== 429)
                return onState("over", error.message);
        }
        if (signal.aborted || place.over || unseen()) continue;
        onState("waiting", "The connection to the server was lost: trying again.");
        await pause(wait * (0.75 + Math.random() / 2));
        wait = Math.min(2 * wait, LONGEST_WAIT);
    }
    if (place.over) onState("over", "");
}

function untilSeen(onState, signal) {
    onState("asleep", "");
    return new Promise((resolve) => {
        const woken = () => document.hidden || resolve();
        document.addEventListener("visibilitychange", woken, { signal });
        signal.addEventListener("abort", resolve, { once: true });
    });
}

// Returns a parser of the stream's text, which takes it piece by piece: https://html.spec.whatwg.org/#event-stream-interpretation
export function parser(place, handlers) {
    let rest = "",
        fields = {};
    const dispatch = () => {
        const { event = "message", data, id } = fields;
        fields = {};
        if (id !== undefined) place.last = id;
        if (event === "end") place.over = true;
        if (data !== undefined || event === "end") handlers[event]?.(data ? JSON.parse(data) : null);
    };
    const line = (text) => {
        if (text === "") return dispatch();
        const colon = text.indexOf(":");
        if (colon === 0) return; // a comment, the heartbeat
        const name = colon < 0 ? text : text.slice(0, colon);
        const value = colon < 0 ? "" : text.slice(colon + 1).replace(/^ /, "");
        fields[name] = name === "data" && fields.data !== undefined ? `${fields.data}\n${value}` : value;
    };
    return (piece) => {
        const text = rest + piece;
        // A carriage return at the very end may be the first half of a line end.
        const carried = text.endsWith("\r") ? 1 : 0;
        const lines = text.slice(0, text.length - carried).split(/\r\n|\n|\r/);
        rest = lines.pop() + text.slice(text.length - carried);
        lines.forEach(line);
    };
}
