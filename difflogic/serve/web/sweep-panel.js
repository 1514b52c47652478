// The trials of a sweep as a table and a drawing, as the sweep itself writes them: {element, update(job)}.

import { calmly, card, h } from "./dom.js";
import { fileAddress } from "./files-panel.js";
import { empty } from "./notices.js";

const EVERY = 3000;

export function sweepPanel(job, signal) {
    const frame = h("iframe", { class: "trials", title: `Trials of ${job.name}`, sandbox: "allow-scripts", hidden: true });
    const nothing = empty("No trial has ended yet", "Each trial that ends adds a row to the table and a line to the plot.");
    let seen = null;
    const look = calmly(
        () => {
            frame.src = fileAddress(job.id, "sweep.html");
        },
        EVERY,
        signal,
    );
    return {
        element: card("trials", "Trials", nothing, frame),
        update(now) {
            const state = `${now.progress} ${now.status}`;
            nothing.hidden = now.progress > 0;
            frame.hidden = !now.progress;
            if (!now.progress || state === seen) return;
            seen = state;
            look();
        },
    };
}
