// Preview of a job before it is submitted: its target, size and cost.

import { h, numberList, setText } from "./dom.js";
import { bytes, count, duration, plural } from "./format.js";
import { generations, played, tableOf } from "./growth.js";
import { isHex, paintRgb } from "./pixels.js";
import { isPolicy } from "./progress.js";

const SIDE = 32, // cells of a rule that runs
    STEPS = 60;

// `more`: elements at the bottom.
export function previewPanel(signal, ...more) {
    const canvas = h("canvas", { class: "grid", role: "img" }),
        cursor = h("div", { class: "cursor", hidden: true }),
        sheet = h("div", { class: "sheet" }, canvas, cursor);
    const words = h("p", { class: "quiet", role: "status" }),
        notices = h("div", { role: "status" });
    const error = h("p", { class: "error", role: "alert", hidden: true });
    const numbers = numberList();
    let running = "",
        stop = () => {};
    const element = h(
        "aside",
        { class: "card preview", "aria-labelledby": "preview-title" },
        h("h2", { id: "preview-title", class: "unseen" }, "Preview"),
        sheet,
        words,
        error,
        numbers.element,
        notices,
        h("div", { class: "foot" }, more),
    );
    signal.addEventListener("abort", () => stop());

    // `isDrawn`: the caller paints the canvas; `invert()` inverts the image.
    function show(reply, isDrawn, invert) {
        const { config, target, cost } = reply,
            { within, restarts } = reply.request;
        const rule = !isPolicy(config) && config.task.target === "rule" ? config.task.rule : "";
        error.hidden = true;
        element.classList.remove("stale");
        canvas.hidden = !target && !rule;
        if (rule !== running) live(rule);
        if (target && !isDrawn) {
            const at = (place) => target.rgb[Math.floor(place / target.width)][place % target.width];
            paintRgb(canvas, target.height, target.width, at, isHex(config));
        }
        const [sentence, shape, epochs] = isPolicy(config) ? agents(reply) : automaton(reply);
        setText(words, sentence);
        if (!isDrawn) canvas.setAttribute("aria-label", sentence);
        numbers.fill([
            ...shape,
            ...(within ? [] : epochs),
            ["Memory", bytes(cost.memory)],
            ...(reply.trials ? [["Trials", count(reply.trials)]] : []),
            ...(restarts ? [["Attempts", `up to ${count(restarts + 1)}`]] : []),
            ["Time", within ? `at most ${within}` : `${reply.trials ? "at most" : "about"} ${duration(cost.seconds)}`],
        ]);
        notices.replaceChildren(...reply.notices.map((text) => notice(text, invert)));
    }

    // A button replaces the advice on `invert`.
    function notice(text, invert) {
        const button = text.includes("`invert`") && h("button", { type: "button", class: "chip", onclick: invert }, "Invert it");
        return h("p", { class: "warning" }, text.replace(/: set `invert`[^.]*/, ""), " ", button);
    }

    // A rule has no image: it runs from noise.
    function live(rule) {
        running = rule;
        stop();
        const table = rule && tableOf(rule);
        if (!table) return;
        const noise = Uint8Array.from({ length: SIDE ** 2 }, () => Number(Math.random() < 0.4));
        stop = played(canvas, { height: SIDE, width: SIDE, visible: 1 }, generations(table, noise, SIDE, STEPS));
    }

    function agents({ config, gates, goal }) {
        const { environment, table } = config;
        if (table) {
            const sentence = `${table.label}, one of ${table.classes.length}, from ${plural(table.features.length, "number")}`;
            return [sentence, [["Rows", count(table.rows)], ["Gates to train", count(gates)]], [["Rows, counted in each epoch", count(goal)]]];
        }
        return [`An agent learns to act in ${environment.id}.`, [["Gates to train", count(gates)]], [["Steps", count(goal)]]];
    }

    function automaton({ config: { data, model, task, train }, target, gates }) {
        const sentence = target
            ? `${target.width} cells wide, ${target.height} high, ${lit(target)} on`
            : task.target === "data"
              ? `${count(data.samples)} samples, ${task.width} cells wide, ${task.height} high`
              : `One step of ${task.rule.length < 128 ? task.rule : "a rule given as a table"}, on any grid`;
        const grid = `${task.width}×${task.height}${model.periodic ? " torus" : ""}`;
        return [sentence, [["Size", grid], ["Gates to train", count(gates)]], [["Epochs", count(train.epochs)]]];
    }

    const lit = ({ rgb }) => rgb.flat().filter((colour) => colour.some((part) => part > 0)).length;

    return {
        element,
        sheet,
        canvas,
        cursor,
        show,
        // An input that is still awaited is not an error.
        fail({ message, isAwaited = false }) {
            error.hidden = isAwaited;
            setText(isAwaited ? words : error, message);
            if (isAwaited) numbers.fill([]);
            element.classList.toggle("stale", !isAwaited);
        },
    };
}
