// Trials of a sweep, a row each: last state, result, and wrong cells during training. A link leads to the page on which
// the sweep draws how the result depends on the fields: {element, update(job)}.

import { get } from "./api.js";
import { card, h, headedTable, s, scroll, tableRow } from "./dom.js";
import { fileAddress } from "./files-panel.js";
import { atCheckpoints } from "./fold.js";
import { count, loss, plural } from "./format.js";
import { empty, errorPlace } from "./notices.js";
import { isHex, paint, unpacked } from "./pixels.js";

const SPARK = { width: 120, height: 28 };

export function sweepPanel(job, signal) {
    const place = errorPlace(),
        body = h("tbody", {});
    const depends = h("p", {}, h("a", { href: fileAddress(job.id, "sweep.html"), target: "_blank" }, "How the result depends on the fields"));
    const table = scroll("Trials", headedTable("trials-of", [names(Object.keys(job.config.over)), "Image", "Result", "Wrong cells"], body));
    const nothing = empty("No trial has ended yet", "Each trial that ends adds a row.");
    const look = atCheckpoints(async () => {
        try {
            const { trials } = await get(`/jobs/${job.id}/files/sweep.json`, { signal });
            body.replaceChildren(...trials.map(row));
        } catch (error) {
            if (error.status !== 404) place.show(error); // a sweep of version 0.1.0 has the drawing alone
        }
    }, signal);

    function row(trial) {
        const which = Object.keys(job.config.over).map((path) => trial[path]).join(", ");
        return tableRow(which, drawing(trial.image), result(trial), spark(trial.curve));
    }

    function drawing(image) {
        if (!image) return "";
        const canvas = h("canvas", { class: "thumbnail", role: "img", "aria-label": "Last state" });
        paint(canvas, { ...image, bits: unpacked(image.bits, image.channels * image.height * image.width) }, isHex(job.config.config));
        return canvas;
    }

    return {
        element: card("trials", "Trials", place.element, nothing, table, depends),
        update(now) {
            nothing.hidden = now.progress > 0;
            table.hidden = depends.hidden = !now.progress;
            if (now.progress) look(now);
        },
    };
}

const names = (paths) => paths.map((path) => path.split(".").at(-1)).join(", ");

function result({ status, solved, wrong, gates, score, error }) {
    if (status === "failed") return error || "failed";
    if (solved) return ["solved", gates && plural(Math.round(gates), "gate")].filter(Boolean).join(", ");
    return score === null ? `${count(wrong)} wrong` : `mean return ${loss(score)}`;
}

function spark(curve) {
    if (curve.length < 2) return "";
    const most = Math.max(1, ...curve);
    const points = curve.map((wrong, i) => `${(i / (curve.length - 1)) * SPARK.width} ${2 + (SPARK.height - 4) * (1 - wrong / most)}`);
    return s("svg", { class: "spark", viewBox: `0 0 ${SPARK.width} ${SPARK.height}`, role: "img", "aria-label": `From ${curve[0]} to ${curve.at(-1)} wrong cells` }, s("path", { class: "line hard", d: `M${points.join("L")}` }));
}
