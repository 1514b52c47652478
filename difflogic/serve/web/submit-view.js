// A form for a new job, beside it what the circuit will see.

import { get, postForm, post } from "./api.js";
import { freshId, h } from "./dom.js";
import { dropZone } from "./drop-zone.js";
import { fieldEditor } from "./fields.js";
import { errorPlace, guarded } from "./notices.js";
import { thumbnail } from "./pixels.js";
import { previewPanel } from "./preview.js";

const WAIT = 300;
const STARTS = [["", "as the preset"], ["random", "random bits"], ["seed", "one cell"], ["zeros", "nothing: all cells off"], ["boards", "all boards"], ["picture", "a picture"]];
const ENGINES = ["auto", "cpu", "gpu", "reference"];

export async function submitView(root, signal, _, query) {
    root.append(h("h1", {}, "New job"), h("p", { class: "quiet", "aria-busy": "true" }, "Loading…"));
    const place = errorPlace();
    try {
        const from = query.get("from");
        const [{ presets }, { fields }, source] = await Promise.all([get("/presets", { signal }), get("/fields", { signal }), from && get(`/jobs/${from}`, { signal })]);
        root.replaceChildren();
        form(root, signal, { presets, fields }, source);
    } catch (error) {
        root.lastChild.replaceWith(place.element);
        place.show(error);
    }
}

function form(root, signal, offer, source) {
    const place = errorPlace(), id = freshId("form");
    const button = h("button", { class: "primary large", form: id }, "Submit");
    const preview = previewPanel(place.element, button);
    let base = source ? { name: source.name, config: source.config } : offer.presets[0];
    let key = freshKey(), timer = 0, asking = null;

    const target = dropZone("Drop the target here", aimed), begin = dropZone("Drop the start here", changed);
    const editor = fieldEditor(offer.fields, changed);
    const presets = h("fieldset", { class: "presets" }, h("legend", {}, "What to learn"), source && presetCard(base, true, "as the job that this is a copy of"), offer.presets.map((each) => presetCard(each, each === base)));
    const text = (name, label, properties = {}) => h("label", { class: "field" }, label, h("input", { name, autocomplete: "off", ...properties }));
    const select = (name, label, choices) => h("label", { class: "field" }, label, h("select", { name }, choices.map(([value, words]) => h("option", { value }, words))));

    const kinds = h("div", { class: "choices", role: "radiogroup", "aria-label": "Target" }, Object.entries({ preset: "The preset's", picture: "A picture", rule: "A rule" }).map(([value, words], i) =>
        h("label", { class: "choice" }, h("input", { type: "radio", name: "target-kind", value, checked: i === 0, onchange: aimed }), h("span", {}, words))));
    const ofPicture = h("div", { hidden: true }, target.element, h("div", { class: "grid-fields" },
        text("size", "Fit into (width x height)", { placeholder: "24x24", pattern: "\\d+x\\d+" }),
        select("colors", "Colours", [["", "as the preset's"], [2, "2"], [8, "8"], [64, "64"]]),
        text("threshold", "Threshold", { inputmode: "decimal", placeholder: "0.26" }),
        text("padding", "Padding", { inputmode: "numeric", placeholder: "0" })));
    const ofRule = h("div", { hidden: true }, text("rule", "Rule", { placeholder: "B3/S23" }));
    const ofStart = h("div", { hidden: true }, begin.element);
    const element = h("form", { id, class: "submit", onsubmit: submit, oninput: changed, novalidate: true },
        presets,
        h("fieldset", {}, h("legend", {}, "Target"), kinds, ofPicture, ofRule,
            select("start", "Start from", STARTS), ofStart),
        h("fieldset", {}, h("legend", {}, "Run"), h("div", { class: "grid-fields" },
            text("name", "Name", { placeholder: base.name, maxlength: 100 }),
            text("engine", "Engine", { placeholder: "auto", list: "engines" }), h("datalist", { id: "engines" }, ENGINES.map((value) => h("option", { value }))),
            text("population", "Models at once", { inputmode: "numeric", placeholder: "1" }),
            text("priority", "Priority (−10 to 10)", { inputmode: "numeric", placeholder: "0" })),
            h("label", { class: "check" }, h("input", { type: "checkbox", name: "stop_when_solved" }), h("span", {}, "Stop as soon as it is solved"))),
        h("fieldset", {}, h("legend", {}, "Every field"), editor.element));
    root.append(h("h1", {}, "New job"), h("div", { class: "columns form" }, element, preview.element));

    function presetCard(each, on, about = each.about) {
        return h("label", { class: "preset" },
            h("input", { type: "radio", name: "preset", value: each.name, checked: on, onchange: () => choose(each) }),
            h("span", {}, h("b", {}, each.name), h("small", {}, about)), thumbnail({ config: each.config }));
    }

    function choose(each) {
        base = each;
        editor.reset(base.config);
        element.elements.name.placeholder = base.name;
    }

    const aim = () => kinds.querySelector(":checked").value;

    function aimed() {
        ofPicture.hidden = aim() !== "picture";
        ofRule.hidden = aim() !== "rule";
        changed();
    }

    // The request's body, with nothing in it that was left as it is.
    function draft() {
        const given = (name) => element.elements[name].value.trim();
        const number = (name) => (given(name) === "" ? undefined : Number.isNaN(Number(given(name))) ? given(name) : Number(given(name)));
        const wishes = aim() === "picture" || given("start") === "picture" ? { size: given("size") || undefined, colors: number("colors"), threshold: number("threshold"), padding: number("padding") } : {};
        const set = editor.values();
        return {
            ...(offer.presets.includes(base) ? { preset: base.name } : { config: base.config }),
            ...wishes,
            rule: (aim() === "rule" && given("rule")) || undefined,
            start: given("start") === "picture" ? undefined : given("start") || undefined,
            name: given("name") || undefined,
            engine: given("engine") || undefined,
            population: number("population"),
            priority: number("priority"),
            stop_when_solved: element.elements.stop_when_solved.checked ? 1 : undefined,
            set: Object.keys(set).length ? set : undefined,
        };
    }

    // The pictures that count, by the name of their part.
    const files = () => Object.entries({ target: aim() === "picture" && target.file(), start_picture: element.elements.start.value === "picture" && begin.file() }).filter(([, file]) => file);

    function send(path, options) {
        if (!files().length) return post(path, draft(), options);
        const body = new FormData();
        body.append("job", JSON.stringify(draft()));
        for (const [name, file] of files()) body.append(name, file);
        return postForm(path, body, options);
    }

    function changed() {
        ofStart.hidden = element.elements.start.value !== "picture";
        key = freshKey();
        clearTimeout(timer);
        timer = setTimeout(look, WAIT);
    }

    async function look() {
        asking?.abort();
        asking = new AbortController();
        const mine = AbortSignal.any([asking.signal, signal]);
        try {
            preview.show(await send("/jobs/preview", { signal: mine }));
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

    document.addEventListener("paste", (event) => {
        const [pasted] = [...event.clipboardData.files].filter(({ type }) => type.startsWith("image/"));
        if (!pasted) return;
        kinds.querySelector("[value=picture]").checked = true;
        target.take(pasted);
    }, { signal });
    editor.reset(base.config);
    look();
}

// Sent with a submission, so that a second click is no second job; `randomUUID` is not there without TLS.
const freshKey = () => [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
