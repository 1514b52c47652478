// From the trained circuit to what it is good for: simplified, drawn, exported and evaluated by follow-up jobs.

import { get, post } from "./api.js";
import { h, repeat, setText } from "./dom.js";
import { fileAddress } from "./files-panel.js";
import { bytes, count } from "./format.js";
import { empty, errorPlace, guarded } from "./notices.js";
import { isOver, statusPill } from "./progress.js";

const EVERY = 1500;
const USUAL = new Set(["svg", "html"]);

export function circuitPanel(job, signal) {
    const place = errorPlace();
    const formats = h("fieldset", { class: "formats" }, h("legend", {}, "Formats"));
    const simplify = button("Simplify", "simplify", () => ({}));
    const exporting = button("Export", "export", () => ({ formats: [...formats.querySelectorAll(":checked")].map(({ value }) => value) }));
    const evaluate = button("Evaluate", "evaluate", () => ({}));
    const list = h("ul", { class: "follow-ups", "aria-label": "Follow-up jobs" });
    const drawing = h("figure", { class: "drawing", hidden: true });
    const offer = h("div", {}, h("div", { class: "buttons" }, job.kind === "train" && [simplify, evaluate]), h("details", {}, h("summary", {}, "Export the circuit"), formats, exporting));
    const wait = empty("No circuit yet", "It can be simplified, drawn and exported from the first checkpoint on.");
    const element = h("section", { class: "card", "aria-labelledby": "circuit-title" }, h("h2", { id: "circuit-title" }, "The circuit"), wait, offer, place.element, list, drawing);
    const shown = new Map();
    let polling = null;

    function button(label, action, body) {
        const made = h("button", { type: "button", class: action === "simplify" ? "primary" : "", "data-action": action, onclick: begin }, label);
        async function begin() {
            if (await guarded(made, place, () => post(`/jobs/${job.id}/${action}`, body()))) poll();
        }
        return made;
    }

    async function offered() {
        const { formats: known } = await get("/formats", { signal });
        formats.append(...known.map(({ name, about }) =>
            h("label", { class: "check" }, h("input", { type: "checkbox", value: name, checked: USUAL.has(name) }), h("span", {}, h("b", {}, name), " ", about))));
    }

    // Looks at the follow-ups until all of them have ended; the newest comes last, so that its drawing is shown.
    function poll() {
        polling?.abort();
        polling = new AbortController();
        repeat(look, EVERY, AbortSignal.any([polling.signal, signal]));
    }

    async function look() {
        try {
            const { jobs } = await get(`/jobs?source=${job.id}&limit=50`, { signal });
            for (const each of jobs.reverse()) await show(each);
            if (jobs.every(isOver)) polling.abort();
        } catch (error) {
            place.show(error);
            polling.abort();
        }
    }

    async function show(follow) {
        if (!shown.has(follow.id)) {
            shown.set(follow.id, entry(follow));
            list.prepend(shown.get(follow.id).element);
        }
        await shown.get(follow.id).update(follow);
    }

    function entry(first) {
        const pill = statusPill(first), words = h("span", { class: "quiet" }), files = h("ul", { class: "files" });
        const element = h("li", {}, h("div", { class: "title" }, h("a", { href: `#/jobs/${first.id}` }, first.kind), pill.element, words), files);
        let filed = false;
        async function update(now) {
            pill.update(now);
            setText(words, now.reason ?? resultWords(now));
            if (now.status !== "done" || filed) return;
            filed = true;
            const found = (await get(`/jobs/${now.id}/files`)).files;
            files.replaceChildren(...found.map(({ name, size }) => h("li", {}, h("a", { href: fileAddress(now.id, name), download: true }, name), h("span", { class: "quiet number" }, bytes(size)))));
            found.filter(({ name }) => name.endsWith(".svg")).forEach(({ name }) => draw(now, name));
        }
        return { element, update };
    }

    function draw(follow, name) {
        const source = fileAddress(follow.id, name);
        drawing.hidden = false;
        drawing.replaceChildren(
            h("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": "The circuit, drawn" }, h("img", { src: source, alt: `The circuit of every cell of ${job.name}, its gates from the neighbourhood on the left to the new state on the right` })),
            h("figcaption", {}, h("a", { href: source, target: "_blank", rel: "noopener" }, "Open the drawing alone")));
    }

    offered().catch(place.show);
    poll();
    return {
        element,
        update(now) {
            const ready = now.kind === "train" ? now.saved_epoch > 0 : now.status === "done";
            wait.hidden = ready || shown.size > 0;
            offer.hidden = !ready;
        },
    };
}

// What a follow-up came to.
function resultWords(job) {
    const { gates, equal, measures, left_out: left } = job.result ?? {};
    if (gates) return `${count(gates.before)} gates became ${count(gates.after)}, ${equal ? "proved equal" : "not proved equal"}`;
    if (measures) return Object.values(measures).join("; ");
    return Object.values(left ?? {}).join(" ");
}
