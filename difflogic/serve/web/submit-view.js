// A form for a new job, beside it what the circuit will see.

import { get, post, postForm } from "./api.js";
import { flat } from "./config-panel.js";
import { freshId, h } from "./dom.js";
import { fieldEditor } from "./fields.js";
import { errorPlace, guarded, patiently } from "./notices.js";
import { presetCards } from "./preset-cards.js";
import { previewPanel } from "./preview.js";
import { isPolicy } from "./progress.js";
import { requestFields } from "./request-fields.js";
import { targetFields } from "./target-fields.js";

const WAIT = 300; // milliseconds after the last change

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
        const copy = source && copyOf(source, presets);
        const circuits = jobs.filter(({ saved_progress: saved }) => saved > 0).map(({ id, name }) => [id, `${name} (${id.slice(0, 4)})`]);
        const lender = copy?.values.init_from;
        if (lender && !circuits.some(([id]) => id === lender)) circuits.push([lender, lender]);
        loading.replaceWith(form(presets, copy, abouts, circuits, signal));
    } catch (error) {
        place.show(error);
        loading.remove();
    }
}

// A job to be copied as one of the offers; the recipes are those of the preset that it began with.
function copyOf(source, presets) {
    const { recipes } = presets.find(({ name }) => name === (source.config.config ?? source.config).name) ?? { recipes: ["paper"] };
    const sweep = source.kind === "sweep" ? source.config : null;
    const values = { ...source, ...source.request, ...sweep, sweep, init_from: source.source };
    const config = sweep?.config ?? source.config;
    return { name: source.name, about: "the settings of the copied job", config, recipes, values, sweep };
}

// `copy`: the offer that is not a preset, if there is one; what the server says of the fields of automata, of agents and of
// a request; `circuits`: [[id, name], ...] of the jobs whose circuit another can begin with.
function form(presets, copy, [automata, agents, request], circuits, signal) {
    const offers = copy ? [copy, ...presets] : presets;
    const id = freshId("form"),
        place = errorPlace();
    const button = h("button", { class: "primary large", form: id }, "Submit");
    const preview = previewPanel(place.element, button);
    const target = targetFields(request.fields, changed, aimed),
        run = requestFields(request.fields, copy?.values, { init_from: circuits }),
        editors = [automata, agents].map(({ fields }) => fieldEditor(fields, changed));
    let base = offers[0],
        editor = editors[0],
        forAgents = false,
        key = freshKey(),
        timer = 0,
        asking = null;

    const cards = presetCards(offers, choose);
    const element = h(
        "form",
        { id, class: "submit", onsubmit: submit, oninput: changed, novalidate: true },
        cards,
        target.element,
        run.element,
        h("fieldset", {}, h("legend", {}, "Every field"), editors.map(({ element }) => element)),
    );

    function choose(offer) {
        base = offer;
        forAgents = isPolicy(base.config);
        editor = editors[Number(forAgents)];
        target.element.hidden = forAgents;
        for (const each of editors) each.element.hidden = each !== editor;
        editor.reset(base.config);
        run.suggest({ ...base, forAgents });
    }

    // A preset of a rule has no room for a picture: the first that grows one is chosen in its place.
    function aimed() {
        if (forAgents || base.config.task.target !== "rule") return;
        const fitting = offers.find(({ config }) => config.task?.target === "picture");
        cards.querySelector(`[value="${fitting.name}"]`).checked = true;
        choose(fitting);
    }

    function send(path, options) {
        const origin = base === copy ? { config: base.config } : { preset: base.name };
        const job = { ...origin, ...(forAgents ? {} : target.wishes()), ...run.wishes(), set: { ...(base === copy && copy.sweep?.set), ...editor.values() } };
        const files = forAgents ? [] : target.files();
        if (!files.length) return post(path, job, options);
        const body = new FormData();
        body.append("job", JSON.stringify(job));
        for (const [name, file] of files) body.append(name, file);
        return postForm(path, body, options);
    }

    function changed() {
        key = freshKey();
        clearTimeout(timer);
        timer = setTimeout(look, WAIT);
    }

    async function look() {
        asking?.abort();
        asking = new AbortController();
        const mine = AbortSignal.any([asking.signal, signal]);
        try {
            const found = await send("/jobs/preview", { signal: mine });
            preview.show(found);
            editor.rebase({ ...flat(base.config), ...found.changed });
            editor.mark("");
            place.clear();
        } catch (error) {
            if (mine.aborted) return;
            preview.fail(error);
            editor.mark(error.message);
        }
    }

    async function submit(event) {
        event.preventDefault();
        const job = await guarded(button, place, () => send("/jobs", { headers: { "Idempotency-Key": key } }));
        if (job) location.hash = `#/jobs/${job.id}`;
    }

    function paste({ clipboardData }) {
        const [picture] = [...clipboardData.files].filter(({ type }) => type.startsWith("image/"));
        if (picture) target.take(picture);
    }

    document.addEventListener("paste", paste, { signal });
    choose(base);
    look();
    return h("div", { class: "columns form" }, element, preview.element);
}

// Sent with a submission, so that a second click is no second job; `randomUUID` is not there without TLS.
function freshKey() {
    const bytes = [...crypto.getRandomValues(new Uint8Array(16))];
    return bytes.map((byte) => byte.toString(16).padStart(2, "0")).join("");
}
