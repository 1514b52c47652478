// The workers: the device, the job, the memory and the speed over the last minutes of each.

import { get, UNREACHABLE } from "./api.js";
import { h, numberList, repeat, s, setText } from "./dom.js";
import { bytes, duration, rate } from "./format.js";
import { empty, errorPlace } from "./notices.js";

const EVERY = 2000;
const MEASUREMENTS = 90; // of a spark line
const SILENT = 20; // seconds

export function devicesView(root, signal) {
    const place = errorPlace(),
        cards = new Map();
    const list = h("ul", { class: "devices", "aria-label": "Workers" });
    const nothing = empty("No workers", "The server starts one worker for each device.");
    const machine = h("p", { class: "quiet" });
    root.append(h("h1", {}, "Devices"), machine, place.element, nothing, list);

    async function load() {
        try {
            const { devices, now, memory, free_memory: free } = await get("/devices", { signal });
            place.clear();
            nothing.hidden = devices.length > 0;
            setText(machine, memory === null ? "" : `This machine has ${bytes(memory)} of memory, ${bytes(free)} free.`);
            const names = new Set(devices.map(({ name }) => name));
            for (const [name, card] of cards)
                if (!names.has(name)) {
                    card.element.remove();
                    cards.delete(name);
                }
            for (const worker of devices) {
                if (!cards.has(worker.name)) {
                    cards.set(worker.name, deviceCard(worker));
                    list.append(cards.get(worker.name).element);
                }
                cards.get(worker.name).update(worker, now - worker.seen);
            }
        } catch (error) {
            place.show(error);
        }
    }
    repeat(load, EVERY, signal);
}

function deviceCard(worker) {
    const numbers = numberList();
    const work = h("p", {}),
        speeds = [];
    let shown = null;
    const line = s("svg", { class: "spark", viewBox: `0 0 ${MEASUREMENTS} 24`, preserveAspectRatio: "none", "aria-hidden": "true" });
    const pill = h("span", { class: "pill" });
    const element = h(
        "li",
        { class: "card device" },
        h("div", { class: "title" }, h("h2", {}, worker.device), pill),
        h("p", { class: "quiet" }, [worker.description, worker.name].filter(Boolean).join(" · ")),
        work,
        line,
        numbers.element,
    );

    // `age`: seconds since the last heartbeat.
    function update(now, age) {
        const busy = now.job !== null || now.progress_per_s !== null; // jobs of others are not named
        const state = age > SILENT ? ["failed", "Silent"] : busy ? ["running", "Busy"] : ["queued", "Free"];
        [pill.dataset.status] = state;
        setText(pill, state[1]);
        name(now.job, busy ? "Busy with another owner's job" : "Waiting for a job");
        const seen = age < 3 ? "now" : `${duration(age)} ago`;
        numbers.fill([["Speed", rate(now.progress_per_s)], ["Memory", bytes(now.memory)], ["Seen", seen]]);
        speeds.push(now.progress_per_s ?? 0);
        if (speeds.length > MEASUREMENTS) speeds.shift();
        const most = Math.max(1e-9, ...speeds);
        const points = speeds.map((speed, i) => `${MEASUREMENTS - speeds.length + i} ${(23 - (22 * speed) / most).toFixed(1)}`);
        line.replaceChildren(s("path", { class: "line soft", d: `M${points.join("L")}` }));
    }

    // Shows the job by name, which is fetched when the job changes.
    async function name(id, otherwise) {
        if (id === null) work.replaceChildren(h("span", { class: "quiet" }, otherwise));
        if (id === shown) return;
        shown = id;
        if (id === null) return;
        try {
            const job = await get(`/jobs/${id}`);
            if (shown === id) work.replaceChildren("Works on ", h("a", { href: `#/jobs/${id}` }, job.name));
        } catch (error) {
            if (error.status !== 404 && error.status !== UNREACHABLE) throw error;
            shown = null; // deleted or unreachable: fetched again
        }
    }
    return { element, update };
}
