// The form of a new job: what to learn and how long, next to a preview; all other settings below.

import { get, post } from "./api.js";
import { freshId, h, setText } from "./dom.js";
import { moreFields } from "./fields.js";
import { errorPlace, guarded, patiently } from "./notices.js";
import { previewPanel } from "./preview.js";
import { isPolicy, isTable } from "./progress.js";
import { whatToLearn } from "./what.js";

const WAIT = 300; // milliseconds between an edit and its preview
const WITHIN = "5m", // default limit of a training until it is solved
    SEEDS = 8; // that are compared
const OMITTED = ["config", "set"], // set by the form
    ASKED = ["rule", "label", "until_solved", "within"]; // in its questions

export async function submitView(root, signal, _, query) {
    const place = errorPlace(),
        loading = h("p", { class: "quiet", "aria-busy": "true" }, "Loading…");
    root.append(h("h1", {}, "New job"), place.element, loading);
    try {
        const from = query.get("from");
        const ask = () =>
            Promise.all([
                get("/presets", { signal }),
                Promise.all(["automata", "agents", "request"].map((of) => get(`/fields?of=${of}`, { signal }))),
                get("/jobs?kind=train&limit=100", { signal }),
                from && get(`/jobs/${from}`, { signal }),
            ]);
        const [{ presets }, abouts, { jobs }, source] = await patiently(ask, place.show, signal);
        place.clear();
        const copy = source && copyOf(source);
        const circuits = jobs.filter(({ saved_progress: saved }) => saved > 0).map(({ id, name }) => [id, `${name} (${id.slice(0, 4)})`]);
        const initial = copy?.values.init_from;
        if (initial && !circuits.some(([id]) => id === initial)) circuits.push([initial, initial]);
        loading.replaceWith(form(presets, copy, abouts.map(({ fields }) => fields), circuits, signal));
    } catch (error) {
        place.show(error);
        loading.remove();
    }
}

// A job to be copied as one of the offers.
function copyOf(source) {
    const sweep = source.kind === "sweep" ? source.config : null;
    const values = { ...source, ...source.request, ...sweep, sweep, init_from: source.source };
    return { id: source.id, name: source.name, config: sweep?.config ?? source.config, values, sweep };
}

// `copy`: the offer of a copied job, if there is one; then the server's descriptions of the fields of automata, agents and
// requests; `circuits`: [[id, name], ...] of the jobs whose circuit can be the initial one.
function form(presets, copy, [automata, agents, request], circuits, signal) {
    const id = freshId("form"),
        place = errorPlace();
    const button = h("button", { class: "primary large", form: id }, "Submit");
    const preview = previewPanel(signal, place.element, button);
    const zones = h("div", {});
    const choices = { init_from: circuits, preset: presets.map(({ name }) => [name, name]) };
    const more = moreFields({ request: request.filter(({ path }) => !OMITTED.includes(path)), automata, agents }, choices, { target: zones }, ASKED, changed);
    const control = (path) => more.options.get(path);
    const what = whatToLearn(presets, copy, { rule: control("rule"), label: control("label"), invert: control("invert") }, preview, { changed, chosen, write: (path, value) => more.say(path, value) });
    zones.append(what.begin);
    const sure = howSure();
    const element = h("form", { id, class: "submit", onsubmit: submit, oninput: changed, novalidate: true }, what.element, sure.element, more.element);
    let base = copy ?? presets[0],
        key = freshKey(),
        timer = 0,
        asking = null;

    function chosen(offer) {
        base = offer;
        const forAgents = isPolicy(base.config);
        control("name").input.placeholder = base.name;
        control("preset").input.value = base === copy ? "" : base.name;
        more.rebase(base.config, forAgents, true);
        sure.show();
        changed();
    }

    // The second question: how sure shall it be?
    function howSure() {
        const until = control("until_solved"),
            within = control("within");
        const choice = (value, ...words) => h("label", { class: "check" }, h("input", { type: "radio", name: "sure", value, onchange: pick }), h("span", {}, words));
        const solved = choice("solved", h("b", {}, "Until it is solved"), h("small", {}, "restarts if it stalls, and is tested on initial states that it has never seen")),
            counted = choice("counted", h("b", {}, "For a number of epochs"), h("small", {}, "whether it is solved or not"));
        const number = h("input", { type: "text", inputmode: "numeric", name: "epochs", "aria-label": "Number of epochs", oninput: say });
        within.input.setAttribute("aria-label", "Limit of time");
        const limit = h("span", { class: "inline" }, "at most ", within.input);
        until.input.hidden = true;
        const several = h("input", { type: "checkbox", name: "seeds", checked: Boolean(copy?.sweep), onchange: compare }),
            seeds = h("label", { class: "check" }, several, h("span", {}, h("b", {}, `Compare ${SEEDS} seeds`), h("small", {}, "runs that differ only in their random choices")));
        const field = () => (isPolicy(base.config) ? "steps" : "train.epochs");

        function pick() {
            const isSolved = solved.firstChild.checked;
            more.say("until_solved", isSolved);
            limit.hidden = !isSolved;
            number.hidden = isSolved;
        }
        function say() {
            more.say(field(), number.value, more.fields());
        }
        function compare() {
            const seed = Number(more.fields().get("seed").input.value);
            more.say("sweep.over", several.checked ? { seed: `${seed}..${seed + SEEDS - 1}` } : {});
            more.say("sweep.metric", several.checked && !isPolicy(base.config) ? "hard_loss" : "");
            changed();
        }
        const begin = copy ? Boolean(copy.values.until_solved) : true;
        more.say("within", copy ? (copy.values.within ?? "") : WITHIN);
        (begin ? solved : counted).firstChild.checked = true;
        pick();
        return {
            element: h(
                "section",
                { class: "question", "aria-labelledby": "sure-title" },
                h("h2", { id: "sure-title" }, "How sure?"),
                h("div", { class: "sure" }, solved, limit, counted, number, seeds, until.input),
            ),
            show() {
                const unit = isTable(base.config) ? "rows" : isPolicy(base.config) ? "steps" : "epochs";
                setText(counted.querySelector("b"), `For a number of ${unit}`);
                number.setAttribute("aria-label", `Number of ${unit}`);
                solved.hidden = seeds.hidden = unit === "rows"; // no accuracy counts as solved
                if (several.checked && unit === "rows") several.click();
                if (solved.hidden && solved.firstChild.checked) {
                    counted.firstChild.checked = true;
                    pick();
                }
                number.value = more.fields().get(field()).input.value;
            },
        };
    }

    async function send(path, options) {
        const set = { ...(base === copy && copy.sweep?.set), ...more.values() };
        const job = { ...more.wishes(), ...what.wishes(), set };
        if (control("name").input.value.trim()) job.name = control("name").input.value.trim();
        const files = await what.files();
        if (!files.length) return post(path, job, options);
        const body = new FormData();
        body.append("job", JSON.stringify(job));
        for (const [name, file] of files) body.append(name, file);
        return post(path, body, options);
    }

    function changed(event) {
        if (event?.target.name === "word") return undefined; // a search alone
        if (event?.target === control("preset").input) return what.choose(event.target.value);
        key = freshKey();
        clearTimeout(timer);
        timer = setTimeout(look, WAIT);
    }

    async function look() {
        clearTimeout(timer);
        asking?.abort();
        asking = new AbortController();
        const mine = AbortSignal.any([asking.signal, signal]);
        try {
            const reply = await send("/jobs/preview", { signal: mine });
            button.disabled = false;
            if (what.isOwn()) what.sees(reply.target, reply.notices);
            else what.leave();
            preview.show(reply, what.isOwn(), what.invert);
            more.rebase(reply.config, isPolicy(base.config), false);
            sure.show();
            more.mark("");
            place.clear();
        } catch (error) {
            if (mine.aborted) return;
            button.disabled = Boolean(error.isAwaited);
            preview.fail(error);
            more.mark(error.message);
        }
    }

    async function submit(event) {
        event.preventDefault();
        const job = await guarded(button, place, () => send("/jobs", { headers: { "Idempotency-Key": key } }));
        if (job) location.hash = `#/jobs/${job.id}`;
    }

    function paste({ clipboardData }) {
        const [image] = [...clipboardData.files].filter(({ type }) => type.startsWith("image/"));
        if (image) what.take(image);
    }

    document.addEventListener("paste", paste, { signal });
    for (const [path] of copy ? more.options : []) {
        const value = path.split(".").reduce((inside, name) => inside?.[name], copy.values);
        if (!["until_solved", "within", "preset"].includes(path) && value !== undefined && value !== null) more.say(path, value);
    }
    what.open();
    look();
    return h("div", { class: "columns form" }, element, preview.element);
}

// Sent with a submission, so that a second click is not a second job; `randomUUID` needs TLS.
const freshKey = () => crypto.getRandomValues(new Uint8Array(16)).join("-");
