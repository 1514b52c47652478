// The living page of a solution, and the post-processing jobs of its circuit: simplification, proof, export and test.

import { get, UNREACHABLE } from "./api.js";
import { card, h, repeat, setText } from "./dom.js";
import { fileAddress, fileRow } from "./files-panel.js";
import { errorPlace } from "./notices.js";
import { isAgents, isOver, KINDS, resultOf, statusPill } from "./progress.js";

const EVERY = 1500;
const LIVING = "live.html";

// {element, update(job), refresh()}: the living page, and below it the jobs. `alive(isAlive)` is called when the page appears
// or disappears, `proved(text)` with the result of a proof of a training.
export function circuitPanel(job, signal, { alive: onAlive, proved }) {
    const trouble = errorPlace();
    const list = h("ul", { class: "follow-ups", "aria-label": "Post-processing jobs" }),
        caption = h("p", { class: "quiet" });
    const frame = h("iframe", { class: "living", title: `Running circuit of ${job.name}`, sandbox: "allow-scripts" });
    const alive = card("alive", "Alive", caption, frame);
    const circuit = card("circuit", "Circuit", trouble.element, list);
    const shown = new Map();
    let isOpen = true,
        status = null;
    alive.hidden = circuit.hidden = true;

    // Polls the jobs until all have ended; the newest comes last, so that its circuit is shown.
    async function look() {
        try {
            const { jobs } = await get(`/jobs?source=${job.id}&limit=50`, { signal });
            trouble.clear();
            for (const follow of jobs.reverse()) await show(follow);
            circuit.hidden = !jobs.length;
            isOpen = !jobs.every(isOver);
        } catch (error) {
            trouble.show(error);
            isOpen = error.status === UNREACHABLE;
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
            result = h("p", {}),
            more = h("div", {}),
            files = h("ul", { class: "files" });
        const fold = h("details", { hidden: true }, h("summary", {}, "Details and files"), more, files);
        const element = h("li", {}, h("div", { class: "title" }, h("a", { href: `#/jobs/${first.id}` }, KINDS[first.kind]), pill.element, words), result, fold);
        let filed = false;
        async function update(now) {
            pill.update(now);
            setText(words, now.reason ?? "");
            if (now.status !== "done" || filed) return;
            filed = true;
            setText(result, now.kind === "evaluate" ? "" : (now.words.results[0] ?? ""));
            if (now.kind === "prove" && job.kind === "train") proved(now.words.standing);
            more.replaceChildren(resultOf(now) ?? "");
            const { files: all } = await get(`/jobs/${now.id}/files`);
            fold.hidden = !all.length;
            fold.open = now.kind !== "prove" && shown.size < 4;
            files.replaceChildren(...all.map((file) => fileRow(now.id, file)));
            if (now.kind === "simplify" && all.some(({ name }) => name === LIVING)) live(now.id, `Simplified: ${now.words.standing}.`);
        }
        return { element, update };
    }

    function live(id, words) {
        const source = fileAddress(id, LIVING);
        if (frame.getAttribute("src") !== source) frame.src = source;
        setText(caption, words);
        showAlive(true);
    }

    function showAlive(isAlive) {
        alive.hidden = !isAlive;
        onAlive(isAlive);
    }

    // The page in the frame reports its height.
    const grow = ({ source, data }) => source === frame.contentWindow && data?.height > 0 && (frame.style.blockSize = `${data.height}px`);
    addEventListener("message", grow, { signal });

    // A solved training shows its own circuit until there is a smaller one.
    async function own(now) {
        const { files } = await get(`/jobs/${now.id}/files`, { signal });
        if (files.some(({ name }) => name === LIVING) && alive.hidden) live(now.id, now.kind !== "train" ? now.words.standing : isAgents(job) ? "Push it, and see which wires carry a 1." : "Click a cell to damage the grid, or point at a cell to see its wires.");
    }

    repeat(() => isOpen && look(), EVERY, signal);
    return {
        element: h("div", { class: "stacked" }, alive, circuit),
        refresh: look,
        update(now) {
            if (now.status === status) return;
            status = now.status;
            if (status === "done") own(now).catch(trouble.show);
            else showAlive(false);
        },
    };
}
