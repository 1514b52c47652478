"use strict";

async function begin() {
    const choice = /** @type {HTMLSelectElement} */ (document.getElementById("preset"));
    const say = (/** @type {string} */ text) => (/** @type {HTMLElement} */ (document.getElementById("said")).textContent = text);
    const plans = await readPlans();
    for (const name of Object.keys(plans.presets)) choice.add(new Option(name));
    /** @type {HTMLElement} */ (document.getElementById("train")).onclick = async () => {
        try {
            const tell = (/** @type {any} */ event) => say(JSON.stringify(event));
            await new Trainer(await openDevice(), plans, choice.value, { tell }).train();
        } catch (error) {
            say(/** @type {Error} */ (error).message);
        }
    };
}

begin();
