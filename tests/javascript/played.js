"use strict";
// What becomes of a recorded run where it is played: in a page, and in Node.

const inBase64 = (/** @type {ArrayBuffer} */ buffer) =>
    btoa(Array.from(new Uint8Array(buffer), (byte) => String.fromCharCode(byte)).join(""));

/**
 * Trains one recorded run for some epochs, and evaluates the hard circuit of another.
 * @param {any} device @param {any} data {kernels, constants, epochs, trained: a plan, hard: a plan}
 */
async function playedRun(device, data) {
    /** @type {any} */
    const found = { device: device.name, software: device.software, losses: [], times: [] };
    for (const name of ["trained", "hard"]) {
        const stage = { plans: { software: data[name], hardware: data[name] } };
        const model = new StageModel(device, stage, data.kernels, data.constants);
        await model.open(() => {});
        await model.run([data[name].init], [], "");
        if (name === "trained") {
            while (found.losses.length < data.epochs) {
                const epoch = found.losses.length;
                found.losses.push(...(await model.train(epoch, data.epochs - epoch)));
                found.times.push([found.losses.length, performance.now()]);
            }
            found.logits = inBase64(await model.download("logits", ""));
        } else {
            found.wrong = await model.evaluate();
            found.words = inBase64(await model.download("words", ""));
        }
        model.close();
    }
    return found;
}
