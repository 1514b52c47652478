// Drives the page of a controller.
prove(async () => {
    async function pole() {
        if (!player.playing) element("play").click();
        const before = state.steps;
        while (state.steps === before && !report.errors.length) await frames(1);
        check(element("play").textContent === (player.playing ? "Pause" : "Play"), "the button says what it does");
        if (player.playing) element("play").click();
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
        check(element("message").textContent.startsWith("It fell after"), "the page reports that the pole fell");
        element("again").click();
    }

    function sliders() {
        const input = document.querySelector("#thresholds input"), before = state.thresholds.flat()[0];
        slide(input, input.min);
        check(state.thresholds.flat()[0] < before, "a slider moves its threshold");
        check(!notes[0] || Math.abs(Number(notes[0].textContent.slice(2)) - state.thresholds.flat()[0]) < 0.001, "the drawing shows its value");
        slide(input, input.max);
        check(state.thresholds.every((values) => values.every((value, i) => i === 0 || values[i - 1] <= value)), "thresholds stay in order");
        element("reset").click();
        check(state.thresholds.flat().join() === trained.flat().join(), "Reset restores the thresholds");
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

    report.actions = proof.observations.map((observation) => decide(observation, trained).number);
    if (circuit.pole) await pole();
    if (trained.flat().length) sliders();
    if (!circuit.pole) slide(element("look-0"), element("look-0").max);
    wires();
});
