// Drives the living page.
prove(async () => {
    Object.assign(report, { runs: [], webgpu: "" });
    const settled = () => automaton.busy;
    const words = () => Array.from(automaton.state);
    const keyOn = (target, key) => target.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true }));

    // In pixels of the canvas.
    function middleOf(y, x) {
        const [left, top, width, height] = layout().box(y, x);
        return [left + width / 2, top + height / 2];
    }

    function point(type, y, x, buttons) {
        const box = canvas.getBoundingClientRect();
        const [u, v] = middleOf(y, x), { width, height } = layout();
        const clientX = box.left + (u * box.width) / width, clientY = box.top + (v * box.height) / height;
        canvas.dispatchEvent(new PointerEvent(type, { clientX, clientY, buttons, bubbles: true, pointerId: 1 }));
    }

    async function agrees(engine, { height, width, steps, start, fires }) {
        await automaton.use(engine);
        const size = height * wordsOf(width);
        const masks = Array.from({ length: steps }, (_, i) => Uint32Array.from(fires.slice(i * size, (i + 1) * size)));
        const after = await automaton.engine.advance(Uint32Array.from(start), height, width, masks);
        report.runs.push({ engine, after: Array.from(after) });
    }

    async function engines() {
        report.webgpu = await GpuEngine.create().then(() => "", (error) => error.message);
        for (const run of proof.runs) for (const engine of report.webgpu ? ["js"] : ["js", "gpu"]) await agrees(engine, run);
    }

    async function beginning() {
        const home = circuit.home;
        if (proof.home === null) return;
        check(automaton.height === home.height && automaton.width === home.width, "the grid is that of the training");
        element("random").click();
        element("again").click();
        await settled();
        check(words().join() === proof.home.join(), "it begins as it was trained to");
        element("update").value = "sync";
        slide(element("speed"), 7);
        element("play").click();
        while (figure.playing && automaton.steps <= home.steps) await frames(1);
        check(figure.playing === image.stays && automaton.steps >= home.steps, "it pauses at its image, unless the image stays");
        figure.pause();
    }

    async function running() {
        element("random").click();
        slide(element("speed"), 7);
        const before = automaton.steps;
        element("play").click();
        while (automaton.steps === before) await frames(1);
        check(element("play").textContent === "Pause", "while it plays the button says Pause");
        element("play").click();
        await settled();
        const paused = automaton.steps;
        await frames(3);
        check(automaton.steps === paused, "it stops after Pause");
        element("step").click();
        await settled();
        check(automaton.steps === paused + 1, "Step does one step");
        canvas.focus();
        keyOn(canvas, "s");
        await settled();
        check(automaton.steps === paused + 2, "the key S does one step");
        await frames(2);
        check(element("steps").textContent === `step ${automaton.steps}`, "the step is shown");
    }

    async function brushes() {
        element("clear").click();
        await settled();
        check(words().every((word) => word === 0), "Clear clears");
        element("brush").value = "paint";
        element("width").value = 1;
        point("pointerdown", 5, 7, 1);
        await settled();
        check(automaton.get(5, 7, 0) === 1, "the brush paints where it points");
        point("pointermove", 6, 7, 2);
        point("pointermove", 5, 7, 2);
        await settled();
        check(words().every((word) => word === 0), "the right button damages");
        Object.assign(figure.cursor, { y: 2, x: 2 });
        keyOn(canvas, "ArrowRight");
        keyOn(canvas, "Enter");
        await settled();
        check(automaton.get(2, 3, 0) === 1, "arrow keys and Enter paint");
        keyOn(canvas, "r");
        await settled();
        const middle = [automaton.height >> 1, automaton.width >> 1];
        check(words().some((word) => word !== 0), "R fills at random");
        element("damage").click();
        await settled();
        check(automaton.get(...middle, 0) === 0 && words().some((word) => word !== 0), "Damage clears the middle");
        await frames(2);
        const pixel = canvas.getContext("2d").getImageData(...middleOf(...middle).map(Math.floor), 1, 1).data;
        check(pixel[3] === 255 && pixel[0] < 128, "cells that are 0 are dark");
    }

    // Each step of a line is a row below the one before; hexagons leave the corners of the canvas empty.
    async function shapes() {
        const alpha = (u, v) => canvas.getContext("2d").getImageData(u, v, 1, 1).data[3];
        if (circuit.neighbourhood === "line") {
            await automaton.resize(1, 40);
            element("step").click();
            await settled();
            await frames(2);
            check(automaton.past.length === 1 && alpha(5, 1) === 255 && alpha(5, 2) === 0, "a line is drawn downwards");
        }
        if (circuit.neighbourhood === "hex") check(alpha(0, 0) === 0, "rows of hexagons are set off from one another");
        await automaton.resize(24, 40);
    }

    async function chance() {
        await automaton.resize(32, 40);
        element("update").value = "async";
        element("update").dispatchEvent(new Event("change"));
        check(!element("rate").disabled, "the chance can be set when the update is asynchronous");
        element("rate").value = 60;
        let ones = 0;
        for (const fire of automaton.fires(20)) for (const word of fire) for (let i = 0; i < 32; i++) ones += (word >>> i) & 1;
        check(Math.abs(ones / (20 * 32 * 64) - 0.6) < 0.02, "six in ten cells fire");
        element("update").value = "sync";
        element("update").dispatchEvent(new Event("change"));
        check(automaton.fires(1)[0].every((word) => word === 0xffffffff), "every cell fires when the update is synchronous");
    }

    function wires() {
        const patch = new Int32Array(9 * circuit.channels), result = new Int32Array(circuit.channels);
        for (const [y, x] of [[0, 0], [3, 33], [automaton.height - 1, automaton.width - 1]]) {
            neighbourhood(automaton.state, automaton.height, automaton.width, y, x >> 5, patch);
            cell(patch, result);
            const values = withGates(circuit.lines, automaton.inputs(y, x));
            circuit.outputs.forEach((bit, c) => check(values[bit] === ((result[c] >>> (x & 31)) & 1), `the wires of channel ${c} show its value`));
        }
    }

    await ready;
    figure.pause();
    await settled();
    await beginning();
    await engines();
    await automaton.resize(24, 40);
    await running();
    await brushes();
    await shapes();
    await chance();
    check(!figure.rows || document.querySelector("#circuit [data-bit]"), "the wires are live");
    await automaton.resize(33, 70);
    wires();
});
