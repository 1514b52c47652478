// A job that works on the circuit of another one, or makes many trials: what it found, and its files.

import { circuitPanel } from "./circuit-panel.js";
import { configPanel } from "./config-panel.js";
import { card, h } from "./dom.js";
import { filesPanel } from "./files-panel.js";
import { follow } from "./follow.js";
import { jobHead } from "./job-head.js";
import { logPanel } from "./log-panel.js";
import { errorPlace } from "./notices.js";
import { isOver } from "./progress.js";
import { resultOf } from "./result.js";
import { sweepPanel } from "./sweep-panel.js";

export function followUpView(root, signal, job) {
    const place = errorPlace();
    const circuit = ["simplify", "sweep"].includes(job.kind) && circuitPanel(job, signal);
    const top = jobHead(job, place, (now) => {
        changed(now);
        if (circuit) circuit.refresh();
    });
    const log = logPanel(job, signal),
        files = filesPanel(job);
    const source = h("p", {}, "Works on the circuit of ", h("a", { href: `#/jobs/${job.source}` }, "the job that it follows"), ".");
    const trials = job.kind === "sweep" && sweepPanel(job, signal);
    const found = h("div", {}),
        result = card("result", "Result", found);
    root.append(
        top.element,
        ...[job.source && source, trials?.element, result, circuit?.element, h("div", { class: "folds" }, files.element, trials && configPanel(job), log.element)].filter(Boolean),
    );
    let status = null;
    const reload = {
        update(now) {
            if (now.kind !== "sweep" || isOver(now) || now.status !== status) files.load();
            status = now.status;
            const told = resultOf(now);
            result.hidden = !told;
            found.replaceChildren(told ?? "");
        },
    };
    const changed = follow(signal, job, place, [top, log, trials, reload, circuit].filter(Boolean), {});
}
