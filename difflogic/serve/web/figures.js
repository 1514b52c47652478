// The numbers of a training that matter, large: {element, update(job)}.

import { h, setText } from "./dom.js";
import { count, loss } from "./format.js";
import { isOver } from "./progress.js";

export function figures(agents = false) {
    const names = agents ? ["Mean return", "Solved", "Active gates"] : ["Soft loss", "Hard loss", "Solved", "Active gates"];
    const values = names.map(() => h("dd", { class: "number" }));
    const element = h(
        "dl",
        { class: "figures card" },
        names.map((name, i) => h("div", {}, h("dt", {}, name), values[i])),
    );
    const update = (job) => {
        const solved = job.population > 1 ? `${job.solved} of ${job.population}` : job.solved ? "yes" : isOver(job) ? "no" : "not yet";
        const losses = agents ? [loss(job.score)] : [loss(job.soft_loss), loss(job.hard_loss)];
        [
            ...losses,
            losses.at(-1) === loss(null) ? "–" : solved,
            count(job.active_gates),
        ].forEach((text, i) => setText(values[i], text));
    };
    return { element, update };
}
