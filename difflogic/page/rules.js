"use strict";
// Early stopping of stalled attempts, as in difflogic/train/stalled.py, and the test of a solved board, as in
// difflogic/train/success.py.

/** @typedef {{epoch: number, wrong: number}} Evaluation */

/**
 * Returns the reason to stop an attempt early, or "" to continue.
 * @param {any} preset @param {number[]} losses @param {Evaluation[]} evaluations @param {any} numbers
 */
function whyStalled(preset, losses, evaluations, { HOPELESS, PROGRESS, MEAN_OF }) {
    const { first_look: look, stages } = preset,
        done = losses.length;
    if (done < look) return "";
    const trained = losses.slice(0, preset.config.search.begin || done), // a search has no soft loss
        soft = trained.map((loss, i) => (Number.isNaN(loss) ? Number.POSITIVE_INFINITY : loss / cellsOf(stages, i + 1)));
    const length = Math.min(MEAN_OF, soft.length);
    const means = soft.slice(length - 1).map((_, i) => meanOf(soft.slice(i, i + length)));
    const lowest = Math.min(...means);
    if (!Number.isFinite(means[means.length - 1])) return "its soft loss is not finite";
    if (means.length > 1 && lowest > HOPELESS * means[0]) return "its soft loss hardly fell";
    const wrong = evaluations.map((evaluation) => evaluation.wrong / cellsOf(stages, evaluation.epoch)),
        fewest = Math.min(...wrong);
    const since = Math.max(
        Math.min(MEAN_OF, done) + means.findIndex((mean) => PROGRESS * mean <= lowest),
        evaluations[wrong.findIndex((share) => PROGRESS * share <= fewest)]?.epoch ?? 0,
    );
    return costOf(stages, done) >= 2 * costOf(stages, since) ? `it made no progress since epoch ${since}` : "";
}

/** Whether the epochs reached the first look, or doubled since. @param {any} preset @param {Evaluation[]} evaluations */
function isMilestone({ first_look: look }, evaluations) {
    const [last, before] = [1, 2].map((i) => Math.floor((evaluations[evaluations.length - i]?.epoch ?? 0) / look));
    return Math.clz32(last) < Math.clz32(before);
}

/** @param {number[]} values */
const meanOf = (values) => values.reduce((sum, value) => sum + value, 0) / values.length;

/** Returns the number of cells of the grid in an epoch. @param {any[]} stages @param {number} epoch */
const cellsOf = (stages, epoch) => {
    const { height, width } = stages.find((stage) => epoch <= stage.until) ?? stages[stages.length - 1];
    return height * width;
};

/** Returns the cost of a number of epochs in cells times steps. @param {any[]} stages @param {number} epochs */
const costOf = (stages, epochs) =>
    stages.reduce((sum, { until, height, width, steps }, i) => {
        const first = i ? stages[i - 1].until : 0,
            last = i === stages.length - 1 ? epochs : Math.min(until, epochs);
        return sum + Math.max(0, last - first) * height * width * steps;
    }, 0);

/**
 * Whether a board is right for fresh initial states, which training has not used: after T and 4T steps, and on a large grid.
 * @param {HardCircuit} hard @param {any} constants
 */
async function isRightAfresh(hard, { STARTS, FRESH_STREAM, TIMES, LARGE }) {
    const { task, model } = hard.preset.config;
    for (const [height, width, steps] of [
        [task.height, task.width, task.steps],
        [task.height, task.width, TIMES * task.steps],
        [LARGE, LARGE, TIMES * task.steps],
    ]) {
        const size = height * width * model.channels,
            target = targetOf(task, height, width),
            starts = coinFlips(foldIn(foldIn(keyFromSeed(hard.seed), FRESH_STREAM), height), STARTS * size);
        for (let first = 0; first < starts.length; first += size) {
            await new Promise((resolve) => setTimeout(resolve)); // keeps the page responsive
            if (hard.wrong(starts.subarray(first, first + size), target, height, width, steps)) return false;
        }
    }
    return true;
}
