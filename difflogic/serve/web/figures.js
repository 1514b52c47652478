// The numbers of a training that matter, large: {element, update(job)}.

import { numberList } from "./dom.js";
import { count, loss } from "./format.js";
import { isOver } from "./progress.js";

export function figures(agents = false) {
    const { element, fill } = numberList("card");
    const update = (job) => {
        const { population } = job.request;
        const solved = population > 1 ? `${job.solved} of ${population}` : job.solved ? "yes" : isOver(job) ? "no" : "not yet";
        const judged = agents ? job.score : job.hard_loss;
        const losses = agents ? [["Mean return", loss(judged)]] : [["Soft loss", loss(job.soft_loss)], ["Hard loss", loss(judged)]];
        fill([...losses, ["Solved", loss(judged) === loss(null) ? "–" : solved], ["Active gates", count(job.active_gates)]]);
    };
    return { element, update };
}
