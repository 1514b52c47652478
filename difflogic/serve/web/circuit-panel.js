// From the trained circuit to what it is good for: simplified, proved, drawn, exported and evaluated by follow-up jobs.

import { get, post, UNREACHABLE } from "./api.js";
import { card, h, repeat, scroll, setText } from "./dom.js";
import { fileAddress } from "./files-panel.js";
import { bytes } from "./format.js";
import { empty, errorPlace, guarded } from "./notices.js";
import { isAgents, isOver, statusPill } from "./progress.js";
import { resultOf } from "./result.js";

const EVERY = 1500;
const VARIED = ["random", "boards"]; // starts that are not the same each time
const USUAL = new Set(["svg", "html"]);

export function circuitPanel(job, signal) {
    const place = errorPlace(),
        trouble = errorPlace();
    const formats = h("fieldset", { class: "formats", onchange: choosing }, h("legend", {}, "Formats"));
    const fromStart = h("input", { type: "checkbox" }),
        ownGrid = h("input", { type: "checkbox", onchange: () => (toTask.disabled = ownGrid.checked) }),
        toTask = h("input", { type: "checkbox" }),
        thorough = h("input", { type: "checkbox" });
    const { task, train } = job.config ?? {};
    const isFixed = task && !VARIED.includes(task.start),
        inStep = isFixed && (train.fire_rate ?? 1) === 1; // else its own grid has more than one rollout
    const simplify = button("Simplify", "simplify", () => ({
        from_start: fromStart.checked || ownGrid.checked,
        size: ownGrid.checked ? `${task.width}x${task.height}` : null,
        task: toTask.checked && !ownGrid.checked,
    }));
    const exporting = button("Export", "export", () => ({ formats: chosen() }));
    const evaluate = button("Evaluate", "evaluate", () => ({ quick: !thorough.checked }));
    const prove = button("Prove", "prove", () => ({}));
    const list = h("ul", { class: "follow-ups", "aria-label": "Follow-up jobs" });
    const drawing = h("figure", { class: "drawing", hidden: true });
    prove.hidden = job.kind !== "simplify" && isAgents(job); // a controller is proved equal to another
    const offer = h(
        "div",
        {},
        job.kind === "simplify" && h("div", { class: "buttons" }, prove),
        job.kind !== "simplify" &&
            h(
                "div",
                { class: "buttons" },
                simplify,
                isFixed && h("label", { class: "inline" }, fromStart, "same from its own start only"),
                inStep && h("label", { class: "inline" }, ownGrid, "same from its own start and on its own grid only"),
                h("label", { class: "inline" }, toTask, "same on its task only"),
                prove,
                evaluate,
                h("label", { class: "inline" }, thorough, "thoroughly"),
            ),
        h("details", {}, h("summary", {}, "Export the circuit"), formats, exporting),
    );
    const wait = empty("No circuit yet", isAgents(job) ? "You can simplify, draw and export it after training." : "You can simplify, draw and export it after the first checkpoint.");
    const element = card("circuit", "The circuit", wait, offer, place.element, trouble.element, list, drawing);
    const shown = new Map();
    const chosen = () => [...formats.querySelectorAll(":checked")].map(({ value }) => value);
    let polling = null;
    exporting.disabled = true; // until something is chosen

    function button(label, action, body) {
        const made = h(
            "button",
            { type: "button", class: action === "simplify" ? "primary" : "", "data-action": action, onclick: begin },
            label,
        );
        async function begin() {
            if (await guarded(made, place, () => post(`/jobs/${job.id}/${action}`, body()))) poll();
        }
        return made;
    }

    function choosing() {
        exporting.disabled = !chosen().length;
    }

    async function offered() {
        const { formats: known } = await get("/formats", { signal });
        formats.append(
            ...known.map(({ name, about }) =>
                h(
                    "label",
                    { class: "check" },
                    h("input", { type: "checkbox", value: name, checked: USUAL.has(name) }),
                    h("span", {}, h("b", {}, name), " ", about),
                ),
            ),
        );
        choosing();
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
            trouble.clear();
            for (const each of jobs.reverse()) await show(each);
            if (jobs.every(isOver)) polling.abort();
        } catch (error) {
            trouble.show(error);
            if (error.status !== UNREACHABLE) polling.abort();
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
        const pill = statusPill(first),
            words = h("span", { class: "quiet" }),
            found = h("div", {}),
            files = h("ul", { class: "files" });
        const element = h(
            "li",
            {},
            h("div", { class: "title" }, h("a", { href: `#/jobs/${first.id}` }, first.kind), pill.element, words),
            found,
            files,
        );
        let filed = false;
        async function update(now) {
            pill.update(now);
            setText(words, now.reason ?? "");
            if (now.status !== "done" || filed) return;
            filed = true;
            found.replaceChildren(resultOf(now) ?? "");
            const { files: made } = await get(`/jobs/${now.id}/files`);
            files.replaceChildren(
                ...made.map(({ name, size }) =>
                    h(
                        "li",
                        {},
                        h("a", { href: fileAddress(now.id, name), download: true }, name),
                        h("span", { class: "quiet number" }, bytes(size)),
                    ),
                ),
            );
            made.filter(({ name }) => name.endsWith(".svg")).forEach(({ name }) => draw(now, name));
        }
        return { element, update };
    }

    // The newest drawing of the simplified circuit, else of the whole.
    function draw(follow, name) {
        if (drawing.dataset.kind === "simplify" && follow.kind !== "simplify") return;
        drawing.dataset.kind = follow.kind;
        const source = fileAddress(follow.id, name);
        drawing.hidden = false;
        drawing.replaceChildren(
            scroll(
                "The circuit, drawn",
                h("img", {
                    src: source,
                    alt: isAgents(job)
                        ? `The controller of ${job.name}, its gates from the thresholds on the left to the action on the right`
                        : `The circuit of every cell of ${job.name}, its gates from the neighbourhood on the left to the new state on the right`,
                }),
            ),
            h("figcaption", {}, h("a", { href: source, target: "_blank", rel: "noopener" }, "Open the drawing alone")),
        );
    }

    offered().catch(place.show);
    poll();
    return {
        element,
        update(now) {
            const ready = now.kind === "train" && !isAgents(now) ? now.saved_progress > 0 : now.status === "done" && now.result?.best !== null;
            wait.hidden = ready || shown.size > 0;
            offer.hidden = !ready;
        },
    };
}
