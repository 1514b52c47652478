"use strict";
// When an attempt is given up: the rules of difflogic/train/stalled.py, for an attempt that others may always follow.

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
