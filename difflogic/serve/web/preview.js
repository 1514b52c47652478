// What the circuit will see, and what it will cost, before anything is submitted.

import { h, setText } from "./dom.js";
import { bytes, count, duration, large } from "./format.js";
import { paintRgb } from "./pixels.js";

// `more`: what stands below.
export function previewPanel(...more) {
    const canvas = h("canvas", { class: "grid", role: "img" });
    const words = h("p", { class: "quiet", role: "status" }),
        told = h("p", { class: "quiet" }),
        notices = h("div", { role: "status" });
    const error = h("p", { class: "error", role: "alert", hidden: true });
    const names = ["Grid", "Channels", "Gates", "CA steps", "Epochs", "Gate evaluations", "Memory", "Attempts", "Time"];
    const values = names.map(() => h("dd", { class: "number" }, "–"));
    const element = h(
        "aside",
        { class: "card preview", "aria-labelledby": "preview-title" },
        h("h2", { id: "preview-title" }, "What the circuit will see"),
        canvas,
        words,
        error,
        h(
            "dl",
            { class: "figures" },
            names.map((name, i) => h("div", {}, h("dt", {}, name), values[i])),
        ),
        told,
        notices,
        h("div", { class: "foot" }, more),
    );

    function show(found) {
        const { model, task, train } = found.config,
            { target } = found;
        error.hidden = true;
        element.classList.remove("stale");
        canvas.hidden = !target;
        if (target)
            paintRgb(
                canvas,
                target.height,
                target.width,
                (place) => target.rgb[Math.floor(place / target.width)][place % target.width],
            );
        const sentence = target
            ? `Target: ${task.target}, ${target.width} cells wide, ${target.height} high, ${lit(target)} on`
            : `Target: one generation of ${task.rule.length < 128 ? task.rule : "a rule given as a table"}`;
        setText(words, sentence);
        canvas.setAttribute("aria-label", sentence);
        const { evaluations, memory, seconds } = found.cost;
        [
            `${task.width}×${task.height}${model.periodic ? " torus" : ""}`,
            count(model.channels),
            count(found.gates),
            count(task.steps),
            count(train.epochs),
            large(evaluations),
            bytes(memory),
            found.within ? "until solved" : found.restarts ? `up to ${count(found.restarts + 1)}` : "1",
            found.within ? `at most ${found.within}` : `about ${duration(seconds)} on two cores`,
        ].forEach((text, i) => setText(values[i], text));
        notices.replaceChildren(...found.notices.map((text) => h("p", { class: "warning" }, text)));
        const changed = Object.keys(found.changed);
        setText(told, changed.length ? `Changed for it: ${changed.join(", ")}.` : "");
    }

    const lit = ({ rgb }) => rgb.flat().filter((colour) => colour.some((part) => part > 0)).length;

    return {
        element,
        show,
        fail(problem) {
            error.hidden = false;
            setText(error, problem.message);
            element.classList.add("stale");
        },
    };
}
