// What the circuit will see, and what it will cost, before anything is submitted.

import { h, numberList, setText } from "./dom.js";
import { bytes, count, duration } from "./format.js";
import { isHex, paintRgb } from "./pixels.js";
import { isPolicy } from "./progress.js";

// `more`: what stands below.
export function previewPanel(...more) {
    const canvas = h("canvas", { class: "grid", role: "img" });
    const words = h("p", { class: "quiet", role: "status" }),
        told = h("p", { class: "quiet" }),
        notices = h("div", { role: "status" });
    const error = h("p", { class: "error", role: "alert", hidden: true });
    const numbers = numberList();
    const element = h(
        "aside",
        { class: "card preview", "aria-labelledby": "preview-title" },
        h("h2", { id: "preview-title" }, "What the circuit will see"),
        canvas,
        words,
        error,
        numbers.element,
        told,
        notices,
        h("div", { class: "foot" }, more),
    );

    function show(found) {
        const { config, target, cost } = found,
            { within, restarts } = found.request;
        error.hidden = true;
        element.classList.remove("stale");
        canvas.hidden = !target;
        if (target) {
            const at = (place) => target.rgb[Math.floor(place / target.width)][place % target.width];
            paintRgb(canvas, target.height, target.width, at, isHex(config));
        }
        const [sentence, shape] = isPolicy(config) ? agents(found) : automaton(found);
        setText(words, sentence);
        canvas.setAttribute("aria-label", sentence);
        numbers.fill([
            ...shape,
            ["Memory", bytes(cost.memory)],
            ...(found.trials ? [["Trials", count(found.trials)]] : []),
            ["Attempts", within ? "until solved" : restarts ? `up to ${count(restarts + 1)}` : "1"],
            ["Time", within ? `at most ${within}` : `${found.trials ? "at most" : "about"} ${duration(cost.seconds)} on two cores`],
        ]);
        notices.replaceChildren(...found.notices.map((text) => h("p", { class: "warning" }, text)));
        const changed = Object.keys(found.changed);
        setText(told, changed.length ? `Settings changed to fit: ${changed.join(", ")}.` : "");
    }

    function agents({ config, gates, goal }) {
        const { environment, algorithm, policy, seed } = config;
        const shape = [["Environment", environment.id], ["Policy", policy], ["Algorithm", algorithm.toUpperCase()], ["Gates", count(gates)], ["Steps", count(goal)], ["Seed", seed]];
        return [`An agent acts in ${environment.id}, in ${count(environment.n_envs)} copies at once`, shape];
    }

    function automaton({ config: { model, task, train }, target, gates }) {
        const sentence = target
            ? `Target: ${task.target}, ${target.width} cells wide, ${target.height} high, ${lit(target)} on`
            : `Target: one generation of ${task.rule.length < 128 ? task.rule : "a rule given as a table"}`;
        const grid = `${task.width}×${task.height}${model.periodic ? " torus" : ""}`;
        const shape = [["Grid", grid], ["Channels", model.channels], ["Gates", gates], ["CA steps", task.steps], ["Epochs", train.epochs]];
        return [sentence, shape.map(([name, value]) => [name, typeof value === "number" ? count(value) : value])];
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
