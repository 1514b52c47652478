// A form for a new job, beside it what the circuit will see.

import { get, postForm, post } from "./api.js";
import { h } from "./dom.js";
import { dropZone } from "./drop-zone.js";
import { fieldEditor } from "./fields.js";
import { errorPlace, guarded } from "./notices.js";
import { thumbnail } from "./pixels.js";
import { previewPanel } from "./preview.js";

const WAIT = 300;

export async function submitView(root, signal, _, query) {
    root.append(h("h1", {}, "New job"), h("p", { class: "quiet", "aria-busy": "true" }, "Loading…"));
    const place = errorPlace();
    try {
        const from = query.get("from");
        const [offer, source] = await Promise.all([get("/presets", { signal }), from ? get(`/jobs/${from}`, { signal }) : null]);
        root.replaceChildren();
        form(root, signal, offer, source);
    } catch (error) {
        root.lastChild.replaceWith(place.element);
        place.show(error);
    }
}

function form(root, signal, offer, source) {
    const place = errorPlace(), preview = previewPanel();
    const start = offer.presets[0];
    let base = source ? { name: source.name, config: source.config } : start;
    let key = freshKey(), timer = 0, asking = null;

    const picture = dropZone(() => {
        if (picture.file()) kinds.querySelector("[value=picture]").checked = true;
        aimed();
    });
    const editor = fieldEditor(offer.fields, changed);
    const presets = h("fieldset", { class: "presets" }, h("legend", {}, "What to learn"), source && presetCard(base, true, "as the job that this is a copy of"), offer.presets.map((each) => presetCard(each, each === base)));
    const text = (name, label, properties = {}) => h("label", { class: "field" }, label, h("input", { name, autocomplete: "off", ...properties }));
    const select = (name, label, choices) => h("label", { class: "field" }, label, h("select", { name }, Object.entries(choices).map(([value, words]) => h("option", { value }, words))));

    const kinds = h("div", { class: "choices", role: "radiogroup", "aria-label": "Target" }, Object.entries({ preset: "The preset's", picture: "A picture", rule: "A rule" }).map(([value, words], i) =>
        h("label", { class: "choice" }, h("input", { type: "radio", name: "target-kind", value, checked: i === 0, onchange: aimed }), h("span", {}, words))));
    const ofPicture = h("div", { hidden: true }, picture.element, h("div", { class: "grid-fields" },
        text("size", "Fit into (width x height)", { placeholder: "24x24", pattern: "\\d+x\\d+" }),
        select("colors", "Colours", { "": "as the preset's", 2: "2", 8: "8", 64: "64" }),
        text("threshold", "Threshold", { inputmode: "decimal", placeholder: "0.26" }),
        text("padding", "Padding", { inputmode: "numeric", placeholder: "0" })));
    const ofRule = h("div", { hidden: true }, text("rule", "Rule", { placeholder: "B3/S23" }));
    const button = h("button", { class: "primary large" }, "Submit");

    const element = h("form", { class: "submit", onsubmit: submit, oninput: changed, novalidate: true },
        presets,
        h("fieldset", {}, h("legend", {}, "Target"), kinds, ofPicture, ofRule,
            select("start", "Start from", { "": "as the preset", random: "random bits", seed: "one cell", zeros: "zeros: nothing", boards: "all boards" })),
        h("fieldset", {}, h("legend", {}, "Run"), h("div", { class: "grid-fields" },
            text("name", "Name", { placeholder: base.name, maxlength: 100 }),
            select("engine", "Engine", Object.fromEntries((offer.engines ?? ["auto", "gpu", "cpu", "reference"]).map((name) => [name, name]))),
            text("population", "Models at once", { inputmode: "numeric", placeholder: "1" }),
            text("priority", "Priority (−10 to 10)", { inputmode: "numeric", placeholder: "0" })),
            h("label", { class: "check" }, h("input", { type: "checkbox", name: "stop_when_solved" }), h("span", {}, "Stop as soon as it is solved"))),
        h("fieldset", {}, h("legend", {}, "Every field"), editor.element),
        place.element, h("div", { class: "buttons" }, button));
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

    function aimed() {
        const kind = kinds.querySelector(":checked").value;
        ofPicture.hidden = kind !== "picture";
        ofRule.hidden = kind !== "rule";
        changed();
    }

    // The request's body, with nothing in it that was left as it is.
    function draft() {
        const given = (name) => element.elements[name].value.trim();
        const number = (name) => (given(name) === "" ? undefined : Number.isNaN(Number(given(name))) ? given(name) : Number(given(name)));
        const kind = kinds.querySelector(":checked").value;
        const wishes = kind === "picture" ? { size: given("size") || undefined, colors: number("colors"), threshold: number("threshold"), padding: number("padding") } : {};
        const set = editor.values();
        return {
            ...(offer.presets.includes(base) ? { preset: base.name } : { config: base.config }),
            ...wishes,
            rule: (kind === "rule" && given("rule")) || undefined,
            start: given("start") || undefined,
            name: given("name") || undefined,
            engine: given("engine"),
            population: number("population"),
            priority: number("priority"),
            stop_when_solved: element.elements.stop_when_solved.checked ? 1 : undefined,
            set: Object.keys(set).length ? set : undefined,
        };
    }

    const file = () => (kinds.querySelector(":checked").value === "picture" ? picture.file() : null);

    function send(path, options) {
        if (!file()) return post(path, draft(), options);
        const body = new FormData();
        body.append("job", JSON.stringify(draft()));
        body.append("target", file());
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
        if (pasted) picture.take(pasted);
    }, { signal });
    editor.reset(base.config);
    look();
}

// Sent with a submission, so that a second click is no second job; `randomUUID` is not there without TLS.
const freshKey = () => [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
