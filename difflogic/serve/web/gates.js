// The number of each of the sixteen gates: by family over the epochs, and one by one now.

import { get } from "./api.js";
import { Chart } from "./chart.js";
import { h, inline, numberCell, setText, tableRow } from "./dom.js";
import { atCheckpoints, fold } from "./fold.js";
import { count } from "./format.js";
import { empty } from "./notices.js";
import { Window } from "./window.js";

// Ids are truth tables, as in difflogic/core/gates.py.
export const FAMILIES = [
    { name: "wires (A, B)", style: "wires", gates: [3, 5] },
    { name: "NOT", style: "nots", gates: [10, 12] },
    { name: "AND, NOR", style: "ands", gates: [1, 2, 4, 8] },
    { name: "OR, NAND", style: "ors", gates: [7, 11, 13, 14] },
    { name: "XOR, XNOR", style: "xors", gates: [6, 9] },
    { name: "constants", style: "constants", gates: [0, 15] },
];
const WIRES = FAMILIES[0].gates; // all gates begin as wires, which would hide the others
const styleOf = (gate) => FAMILIES.find((family) => family.gates.includes(gate)).style;

// {element, update(job)}
export function gatesPanel(job, signal) {
    const span = new Window(); // epochs of the job's own attempt
    const chart = new Chart(span, {
        title: "Over the epochs",
        label: "Number of gates of each kind, by epoch.",
        height: 230,
        scale: "linear",
        write: { tick: count, value: count },
    });
    const layer = h("select", { onchange: () => draw() }),
        wires = h("input", { type: "checkbox", onchange: () => draw() });
    const table = h("table", { class: "bars" }, h("caption", {}), h("tbody", {}));
    const choices = h("div", { class: "buttons" }, inline("Layer ", layer), inline(wires, "Count wires too"));
    const shown = h("div", { class: "gates-shown", hidden: true }, chart.element, h("div", {}, choices, table));
    const nothing = empty("No gates counted yet", "Gates are counted at each checkpoint.");
    const { element, look } = fold("gates", "Gates", load, nothing, shown);
    const lookAgain = atCheckpoints(look, signal);
    let current = job;
    let census = { names: [], history: [] };

    const countsOf = (entry) => {
        const wanted = entry.layers.filter(({ name }) => !layer.value || name === layer.value);
        return census.names.map((_, gate) =>
            WIRES.includes(gate) && !wires.checked ? 0 : wanted.reduce((sum, { counts }) => sum + counts[gate], 0),
        );
    };

    async function load() {
        const before = current;
        if (!before.saved_progress) return;
        const reply = await get(`/jobs/${job.id}/gates`);
        if (before.attempt !== current.attempt || !reply.history.length) return; // else the counts are of another attempt
        census = reply;
        nothing.hidden = true;
        shown.hidden = false;
        const names = census.history.at(-1).layers.map(({ name }) => name);
        if (layer.options.length !== names.length + 1)
            layer.replaceChildren(h("option", { value: "" }, "All layers"), ...names.map((name) => h("option", { value: name }, name)));
        draw();
    }

    function draw() {
        const counted = census.history.map((entry) => ({ epoch: entry.epoch, counts: countsOf(entry) }));
        chart.element.hidden = counted.length < 2;
        span.extend(0, counted.at(-1).epoch);
        chart.show(bands(counted).filter(({ style }) => wires.checked || style !== "wires"));
        const { epoch, counts } = counted.at(-1),
            all = counts.reduce((a, b) => a + b, 0),
            most = Math.max(1, ...counts);
        const which = wires.checked ? "" : ", wires not counted";
        setText(table.caption, all ? `${count(all)} gates at epoch ${count(epoch)}${which}` : `All gates are wires at epoch ${count(epoch)}`);
        const shown = [...counts.keys()].filter((gate) => all && (wires.checked || !WIRES.includes(gate)));
        table.tBodies[0].replaceChildren(...shown.map((gate) => row(gate, counts[gate], most)));
    }

    function row(gate, number, most) {
        const bar = h("span", { class: `bar ${styleOf(gate)}`, hidden: !number });
        bar.style.inlineSize = `${(100 * number) / most}%`;
        return tableRow(census.names[gate], numberCell(count(number)), h("td", { "aria-hidden": "true" }, bar));
    }

    return {
        element,
        update(now) {
            current = now;
            lookAgain(now);
        },
        refresh: look,
    };
}

// Stacked bands, one for each family.
function bands(counted) {
    const below = counted.map(() => 0);
    return FAMILIES.map(({ name, style, gates }) => {
        const low = counted.map(({ epoch }, i) => [epoch, below[i]]);
        const points = counted.map(({ epoch, counts }, i) => [epoch, (below[i] = gates.reduce((sum, gate) => sum + counts[gate], below[i]))]);
        return { name, style, points, low };
    });
}
