"use strict";
// When an attempt is given up, as difflogic/train/stalled.py has it where others may follow, and when a board is
// right, by difflogic/train/success.py.

/** @typedef {{epoch: number, wrong: number}} Judged */

/**
 * Why an attempt is of no promise or late; "" where it is neither.
 * @param {any} preset @param {number[]} losses @param {Judged[]} judged @param {any} numbers
 */
function whyStalled(preset, losses, judged, numbers) {
    const done = losses.length,
        { search, growth } = preset.config;
    if (done < preset.first_look) return "";
    const mean = (/** @type {number} */ end) => meanOf(losses.slice(Math.max(0, end - numbers.MEAN_OF), end));
    // A search has no soft loss.
    const trained = search.begin ? Math.min(done, search.begin) : done;
    if (!Number.isFinite(mean(trained))) return "its soft loss is not finite";
    const { most, end, late } = search.begin
        ? termsOfSearch(preset, judged, numbers)
        : growth.until.length
          ? termsOfGrowth(preset, losses, numbers)
          : termsOfProgress(preset, losses, judged, numbers);
    if (done >= end) return late;
    return most.some(([epoch, loss]) => epoch <= done && mean(epoch) > loss) ? "its soft loss hardly fell" : "";
}

/** @typedef {{most: [number, number][], end: number, late: string}} Terms by which epochs the loss must be how low */

/** @param {number[]} values */
const meanOf = (values) => values.reduce((sum, each) => sum + each, 0) / values.length;

/** The first epoch with at most so many times the fewest wrong values. @param {Judged[]} judged */
const fewestWrong = (judged, times = 1) => {
    const fewest = Math.min(...judged.map((each) => each.wrong));
    return judged.find((each) => each.wrong <= times * fewest)?.epoch ?? 0;
};

/** @param {any} preset @param {Judged[]} judged @param {any} numbers @returns {Terms} */
function termsOfSearch({ config, first_look: look }, judged, { UNLIKE, LONG, MENDED }) {
    const { task, train, search } = config,
        values = train.batch * task.height * task.width * task.loss_channels;
    const end = Math.max(search.begin + look, fewestWrong(judged, MENDED) + look / LONG);
    return { most: search.begin >= look ? [[look, UNLIKE * values]] : [], end, late: "it was late" };
}

/** Whether a search makes so little progress that what can be repaired is. @param {any} preset @param {Judged[]} judged @param {any} numbers */
function mendsNothing({ config, first_look: look }, judged, { MENDED, SOON }) {
    const done = judged[judged.length - 1].epoch;
    return done - Math.max(config.search.begin, fewestWrong(judged, MENDED)) >= look / SOON;
}

/**
 * The loss of a cell must have fallen when a grid grows, and some time after that.
 * @param {any} preset @param {number[]} losses @param {any} numbers @returns {Terms}
 */
function termsOfGrowth({ config, stages, first_look: look }, losses, { LATEST_GROWN, SLOW, MEAN_OF }) {
    const looks = [...config.growth.until],
        first = meanOf(losses.slice(0, MEAN_OF)) / (stages[0].height * stages[0].width);
    if (losses.length >= looks[looks.length - 1] + look / 2) looks.push(losses.length);
    const cells = (/** @type {number} */ epoch) => {
        const { height, width } = stages.find((/** @type {any} */ each) => epoch <= each.until);
        return height * width;
    };
    const most = looks.map((epoch) => /** @type {[number, number]} */ ([epoch, SLOW * first * cells(epoch)]));
    return { most, end: LATEST_GROWN * config.train.epochs, late: "it was late" };
}

/**
 * What makes no progress for a window of epochs is late; what has learned has as long again as it took.
 * @param {any} preset @param {number[]} losses @param {Judged[]} judged @param {any} numbers @returns {Terms}
 */
function termsOfProgress({ config }, losses, judged, { WINDOW, SMALL, PROGRESS, MEAN_OF }) {
    const window = Math.max(MEAN_OF, Math.round(WINDOW * config.train.epochs));
    const soft = losses.map((loss) => (Number.isNaN(loss) ? Number.POSITIVE_INFINITY : loss));
    const means = soft.slice(MEAN_OF - 1).map((_, i) => meanOf(soft.slice(i, i + MEAN_OF)));
    const lowest = Math.min(...means);
    const since = Math.max(MEAN_OF + means.findIndex((mean) => mean * PROGRESS <= lowest), fewestWrong(judged));
    const learned = Math.min(...means.slice(-window)) <= SMALL * meanOf(losses.slice(0, MEAN_OF));
    return { most: [], end: since + (learned ? since : window), late: `it made no progress since epoch ${since}` };
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
