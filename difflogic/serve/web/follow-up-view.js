// A job that works on the circuit of another one: what it found, and its files.

import { circuitPanel } from "./circuit-panel.js";
import { card, h } from "./dom.js";
import { filesPanel } from "./files-panel.js";
import { follow } from "./follow.js";
import { jobHead } from "./job-head.js";
import { logPanel } from "./log-panel.js";
import { errorPlace } from "./notices.js";
import { resultOf } from "./result.js";

export function followUpView(root, signal, job, shared) {
    const place = errorPlace();
    const top = jobHead(job, place, (now) => changed(now), shared);
    const log = logPanel(job, signal),
        files = filesPanel(job);
    const source = h(
        "p",
        {},
        "Works on the circuit of ",
        h("a", { href: `#/jobs/${job.source}` }, "its training"),
        ".",
    );
    const circuit = !shared && job.kind === "simplify" && circuitPanel(job, signal);
    const found = h("div", {}),
        result = card("result", "Result", found);
    root.append(
        top.element,
        ...[!shared && job.source && source, result, circuit?.element, files.element, log.element].filter(Boolean),
    );
    const reload = {
        update(now) {
            files.load();
            const told = resultOf(now);
            result.hidden = !told;
            found.replaceChildren(told ?? "");
        },
    };
    const changed = follow(signal, job, place, [top, log, reload, circuit].filter(Boolean), {}, shared);
}
