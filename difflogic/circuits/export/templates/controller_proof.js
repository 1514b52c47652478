"use strict";
// Drives the page as its user would, and posts to the server what it found; `errors` was begun before the page's scripts.
(async () => {
    const report = { errors, failures: [], width: innerWidth };
    const check = (holds, what) => holds || report.failures.push(what);
    const frames = async (count) => {
        for (let i = 0; i < count; i++) await new Promise(requestAnimationFrame);
    };
    const slide = (input, value) => {
        input.value = value;
        input.dispatchEvent(new Event("input"));
    };

    async function pole() {
        if (!state.playing) element("play").click();
        const before = state.steps;
        while (state.steps === before && !report.errors.length) await frames(1);
        check(element("play").textContent === (state.playing ? "Pause" : "Play"), "the button says what it does");
        if (state.playing) element("play").click();
        element("again").click();
        check(state.steps === 0 && state.observation.every((value) => Math.abs(value) <= 0.05), "it begins near the middle");
        element("step").click();
        check(state.steps === 1 && element("count").textContent === "Step 1", "Step does one step, and shows it");
        const spin = state.observation[3];
        slide(element("strength"), 10);
        element("right").click();
        check(Math.abs(state.observation[3] - spin - 1) < 1e-9, "a push turns the pole to the right");
        document.body.dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowLeft", bubbles: true, cancelable: true }));
        check(Math.abs(state.observation[3] - spin) < 1e-9, "the arrow to the left pushes back");
        const box = element("scene").getBoundingClientRect();
        element("scene").dispatchEvent(new PointerEvent("pointerdown", { clientX: box.left + 1, clientY: box.top + 1, bubbles: true }));
        check(state.observation[3] > spin, "a click at the left pushes to the right");
        state.observation = [0, 0, 0.2, 3];
        element("step").click();
        element("step").click();
        check(element("message").textContent.startsWith("It fell after"), "a pole that fell is said to have fallen");
        element("again").click();
    }

    function sliders() {
        const input = document.querySelector("#thresholds input"), before = state.thresholds.flat()[0];
        slide(input, input.min);
        check(state.thresholds.flat()[0] < before, "a slider moves its threshold");
        check(!notes[0] || Math.abs(Number(notes[0].textContent.slice(2)) - state.thresholds.flat()[0]) < 0.001, "the drawing says where it is");
        slide(input, input.max);
        check(state.thresholds.every((values) => values.every((value, i) => i === 0 || values[i - 1] <= value)), "thresholds stay in order");
        element("reset").click();
        check(state.thresholds.flat().join() === trained.flat().join(), "thresholds become as they were");
    }

    function wires() {
        const marks = document.querySelectorAll("#circuit [data-bit]");
        if (!marks.length) return;
        const { values } = decide(observed(), state.thresholds);
        for (const mark of marks) {
            const wanted = (values[mark.dataset.bit] ^ Number(mark.dataset.inverted ?? 0)) === 1;
            check(mark.classList.contains("on") === wanted, `the mark of bit ${mark.dataset.bit} is lit as it should be`);
        }
    }

    function readable() {
        for (const control of document.querySelectorAll("button, input")) {
            const name = control.getAttribute("aria-label") || control.closest("label")?.textContent || control.textContent;
            check(name.trim(), `the control ${control.id} has a name`);
        }
        check(document.documentElement.scrollWidth <= innerWidth, `the page is ${document.documentElement.scrollWidth} px wide`);
    }

    try {
        report.actions = proof.observations.map((observation) => decide(observation, trained).number);
        if (circuit.pole) await pole();
        if (trained.flat().length) sliders();
        if (!circuit.pole) slide(element("look-0"), element("look-0").max);
        wires();
        readable();
    } catch (error) {
        report.failures.push(`it ends early: ${error.stack ?? error}`);
    }
    await fetch("report", { method: "POST", body: JSON.stringify(report) });
})();
