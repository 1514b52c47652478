// Browser notifications when one's jobs end, while the page is open in some tab. The page asks for permission only after
// a click.

import { get } from "./api.js";
import { setText } from "./dom.js";
import { listen } from "./events.js";
import { announce } from "./notices.js";

const KEY = "difflogic-notify"; // of the local storage
const NOTIFIED = ["done", "failed"]; // cancelled jobs were ended by a user

const button = document.getElementById("alerts");
let stream = null,
    owner = "";

// Called with the session after sign-in, and with null after sign-out.
export function alertsFor(session) {
    stop();
    owner = session?.owner;
    // Without TLS, browsers allow notifications only from this machine.
    button.hidden = !session || !globalThis.Notification;
    if (!button.hidden && localStorage.getItem(KEY) === "on" && Notification.permission === "granted") start();
}

button.addEventListener("click", async () => {
    if (stream) {
        localStorage.removeItem(KEY);
        return stop();
    }
    if ((await Notification.requestPermission()) === "granted") {
        localStorage.setItem(KEY, "on");
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
    const notified = new Set(),
        asked = Date.now();
    let since = null; // by the server's clock: jobs that ended before the click are not reported
    const onJob = (job) => {
        const end = `${job.id} ${job.ended}`;
        if (job.owner !== owner || !NOTIFIED.includes(job.status) || notified.has(end)) return;
        if (Date.parse(job.ended) / 1000 < since) return;
        notified.add(end);
        notify(job, end);
    };
    const reply = await get("/devices", { signal: mine.signal }).catch(() => null);
    // The answer may take long: jobs that end meanwhile are reported.
    since = Math.floor(reply ? reply.now - (Date.now() - asked) / 1000 : asked / 1000);
    if (!mine.signal.aborted) listen("/events", { job: onJob }, () => {}, mine.signal, true);
}

function notify(job, tag) {
    const words = [job.words.standing, job.words.remark].filter(Boolean).join(". ");
    const icon = document.querySelector("link[rel=icon]").href;
    // By the tag the browser shows one notification for several open pages.
    const shown = new Notification(job.name, { body: words, tag, icon });
    shown.onclick = () => {
        window.focus();
        location.hash = `#/jobs/${job.id}`;
        shown.close();
    };
}
