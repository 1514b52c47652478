"use strict";
// When an attempt is given up, as difflogic/train/stalled.py has it where others may follow, and when a board is
// right, by difflogic/train/success.py.

/** @typedef {{epoch: number, wrong: number}} Judged */

/**
 * Why an attempt is of no promise; "" where it is.
 * @param {any} preset @param {number[]} losses @param {Judged[]} judged @param {any} numbers
 */
function whyStalled(preset, losses, judged, numbers) {
    const { LATEST_GROWN, SLOW, MEAN_OF } = numbers,
        look = preset.first_look,
        { epochs } = preset.config.train;
    if (losses.length < look) return "";
    const mean = (/** @type {number} */ end) =>
        losses.slice(Math.max(0, end - MEAN_OF), end).reduce((a, b) => a + b, 0) / Math.min(MEAN_OF, end);
    if (preset.config.search.begin) return whySearched(preset, losses, mean, numbers);
    if (!Number.isFinite(mean(losses.length))) return "its soft loss is not finite";
    const { until } = preset.config.growth;
    if (!until.length) return whyNoProgress(losses, judged, epochs, numbers);
    if (losses.length >= LATEST_GROWN * epochs) return "it was late";
    const looks = until.filter((/** @type {number} */ epoch) => epoch <= losses.length);
    if (losses.length >= until.at(-1) + look / 2) looks.push(losses.length);
    const cells = (/** @type {number} */ epoch) => {
        const stage = preset.stages.find((/** @type {any} */ each) => epoch <= each.until) ?? preset.stages.at(-1);
        return stage.height * stage.width;
    };
    const first = mean(Math.min(MEAN_OF, losses.length)) / cells(1);
    const slow = looks.some((/** @type {number} */ epoch) => mean(epoch) / cells(epoch) > SLOW * first);
    return slow ? "its soft loss hardly fell" : "";
}

/**
 * The same of what ends with a search: a search has no loss.
 * @param {any} preset @param {number[]} losses @param {(end: number) => number} mean @param {any} numbers
 */
function whySearched(preset, losses, mean, { UNLIKE, LONG }) {
    const { task, train, search } = preset.config,
        look = preset.first_look;
    const values = train.batch * task.height * task.width * task.loss_channels;
    if (search.begin >= look && !(mean(look) <= UNLIKE * values)) return "its soft loss was more than a search mends";
    return losses.length - search.begin >= Math.max(LONG * search.begin, look) ? "its search took long" : "";
}

/**
 * The same of what does not grow.
 * @param {number[]} losses @param {Judged[]} judged @param {number} epochs @param {any} numbers
 */
function whyNoProgress(losses, judged, epochs, { WINDOW, SMALL, PROGRESS, MEAN_OF }) {
    const window = Math.max(MEAN_OF, Math.round(WINDOW * epochs));
    if (losses.length < MEAN_OF + window) return "";
    const means = losses
        .slice(MEAN_OF - 1)
        .map((_, i) => losses.slice(i, i + MEAN_OF).reduce((a, b) => a + b, 0) / MEAN_OF);
    const lowest = Math.min(...means),
        fewest = Math.min(...judged.map((each) => each.wrong));
    const since = Math.max(
        MEAN_OF + means.findIndex((mean) => mean * PROGRESS <= lowest),
        judged.find((each) => each.wrong === fewest)?.epoch ?? 0,
    );
    const learned = Math.min(...means.slice(-window)) <= SMALL * means[0];
    return losses.length - since >= (learned ? since : window) ? `it made no progress since epoch ${since}` : "";
}

/**
 * Fresh starts decide, which nothing was chosen by: after T and 4T steps, and on a large grid.
 * @param {HardCircuit} hard @param {any} constants
 */
async function testBoard(hard, constants) {
    const { STARTS, TIMES, LARGE } = constants,
        { height, width, steps } = hard.preset.config.task;
    const wrong = await countWrong(hard, height, width, steps, STARTS, constants);
    const later = await countWrong(hard, height, width, TIMES * steps, STARTS, constants);
    const large = await countWrong(hard, LARGE, LARGE, TIMES * steps, STARTS, constants);
    return { passed: !wrong && !later && !large, wrong, later, large };
}

/**
 * Wrong values from so many fresh starts, as far as the first that is wrong.
 * @param {HardCircuit} hard @param {number} height @param {number} width @param {number} steps @param {number} count
 * @param {any} constants
 */
async function countWrong(hard, height, width, steps, count, constants) {
    const { task, model } = hard.preset.config,
        each = height * width * model.channels,
        target = targetOf(task, height, width);
    const starts = coinFlips(foldIn(foldIn(keyFromSeed(hard.seed), constants.FRESH_STREAM), height), count * each);
    let wrong = 0;
    for (let start = 0; start < count && !wrong; start++) {
        await new Promise((resolve) => setTimeout(resolve)); // the page stays awake
        wrong += hard.wrong(starts.subarray(start * each, (start + 1) * each), target, height, width, steps);
    }
    return wrong;
}
