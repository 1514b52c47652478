// The trials of a sweep as a table and a drawing, as the sweep itself writes them: {element, update(job)}.

import { card, h } from "./dom.js";
import { fileAddress } from "./files-panel.js";
import { atCheckpoints } from "./fold.js";
import { empty } from "./notices.js";

export function sweepPanel(job, signal) {
    const frame = h("iframe", { class: "trials", title: `Trials of ${job.name}`, sandbox: "allow-scripts", hidden: true });
    const nothing = empty("No trial has ended yet", "Each trial that ends adds a row to the table and a line to the plot.");
    const look = atCheckpoints(() => (frame.src = fileAddress(job.id, "sweep.html")), signal);
    return {
        element: card("trials", "Trials", nothing, frame),
        update(now) {
            nothing.hidden = now.progress > 0;
            frame.hidden = !now.progress;
            if (now.progress) look(now);
        },
    };
}
