// Messages of the page: the state of the connection, news for screen readers, and errors.

import { UNREACHABLE } from "./api.js";
import { h, pause, setText } from "./dom.js";

const STATES = { live: "Live", waiting: "Reconnecting", asleep: "Paused", over: "Up to date", none: "" };

// In the header; `message` is the longer sentence.
export function showConnection(state, message = "") {
    const shown = document.getElementById("connection");
    shown.dataset.state = state;
    shown.title = message;
    setText(shown.querySelector("span"), STATES[state]);
    const banner = document.getElementById("offline");
    banner.hidden = state !== "waiting";
    setText(banner, state === "waiting" ? message : "");
}

// For screen readers.
export function announce(text) {
    setText(document.getElementById("news"), text);
}

// Announces the progress of jobs at each status and every ten per cent, so that a screen reader can read other things.
export function announcer() {
    const states = new Map();
    return (job, words) => {
        const tenth = job.goal ? Math.floor((10 * job.progress) / job.goal) : 0;
        const now = `${job.status} ${tenth}`;
        if (states.has(job.id) && states.get(job.id) !== now) announce(`${job.name}: ${words}`);
        states.set(job.id, now);
    };
}

// A place for one error: {element, show(error), clear()}.
export function errorPlace() {
    const element = h("p", { class: "error", role: "alert", hidden: true });
    return {
        element,
        show(error) {
            if (error.name === "AbortError") return;
            element.hidden = false;
            setText(element, error.message);
        },
        clear() {
            element.hidden = true;
            element.textContent = "";
        },
    };
}

const AGAIN = 2000;
const AWAY = [UNREACHABLE, 502, 503, 504];

// Resolves to the result of `work`. While the server is away, calls `report(error)` and tries again.
export async function patiently(work, report, signal) {
    for (;;) {
        try {
            return await work();
        } catch (error) {
            if (signal.aborted || !AWAY.includes(error.status)) throw error;
            report(error);
            await pause(AGAIN);
        }
    }
}

// Runs `work` with its button disabled; an error is shown at `place`.
export async function guarded(button, place, work) {
    place.clear();
    button.setAttribute("aria-busy", "true");
    button.disabled = true;
    try {
        return await work();
    } catch (error) {
        place.show(error);
    } finally {
        button.removeAttribute("aria-busy");
        button.disabled = false;
    }
}

export const empty = (title, text, ...more) =>
    h("div", { class: "empty" }, h("p", { class: "empty-title" }, title), h("p", {}, text), ...more);
