// Tells of the ends of one's jobs by the browser's notifications, while the page is open somewhere, seen or not. They are
// asked for by a click, and never by themselves.

import { get } from "./api.js";
import { setText } from "./dom.js";
import { listen } from "./events.js";
import { announce } from "./notices.js";

const KEPT = "difflogic-notify";
const TOLD = ["done", "failed"]; // whoever cancels a job knows

const button = document.getElementById("alerts");
let stream = null,
    owner = "";

// After signing in, with the session; after signing out, with null.
export function alertsFor(session) {
    stop();
    owner = session?.owner;
    // Without TLS browsers have no notifications, but on this machine.
    button.hidden = !session || !globalThis.Notification;
    if (!button.hidden && localStorage.getItem(KEPT) === "on" && Notification.permission === "granted") start();
}

button.addEventListener("click", async () => {
    if (stream) {
        localStorage.removeItem(KEPT);
        return stop();
    }
    if ((await Notification.requestPermission()) === "granted") {
        localStorage.setItem(KEPT, "on");
        return start();
    }
    setText(button, "Notifications are blocked");
    announce("Your browser blocks notifications from this page. You can allow them in its settings.");
});

function show() {
    button.setAttribute("aria-pressed", String(Boolean(stream)));
    setText(button, stream ? "Notifying" : "Notify me");
}

function stop() {
    stream?.abort();
    stream = null;
    show();
}

async function start() {
    const mine = (stream = new AbortController());
    show();
    const told = new Set(),
        asked = Date.now();
    let since = null; // by the server's clock: what ended before the click is no news
    const heard = (job) => {
        const end = `${job.id} ${job.ended}`;
        if (job.owner !== owner || !TOLD.includes(job.status) || told.has(end)) return;
        if (Date.parse(job.ended) / 1000 < since) return;
        told.add(end);
        tell(job, end);
    };
    const found = await get("/devices", { signal: mine.signal }).catch(() => null);
    // The answer may take long, and what ended meanwhile is news.
    since = Math.floor(found ? found.now - (Date.now() - asked) / 1000 : asked / 1000);
    if (!mine.signal.aborted) listen("/events", { job: heard }, () => {}, mine.signal, true);
}

function tell(job, tag) {
    const words = [job.words.standing, job.words.remark].filter(Boolean).join(". ");
    const icon = document.querySelector("link[rel=icon]").href;
    // The tag: of several pages that are open the browser shows one notification.
    const shown = new Notification(job.name, { body: words, tag, icon });
    shown.onclick = () => {
        window.focus();
        location.hash = `#/jobs/${job.id}`;
        shown.close();
    };
}
