const SPEEDS = [5, 10, 25, 50, 200]; // steps a second; 50 are real time
const names = circuit.observations.map((observation) => observation.name);
const trained = circuit.observations.map((observation) => observation.thresholds);
const state = {
    observation: names.map(() => 0),
    thresholds: trained.map((values) => [...values]),
    memory: [], // of an agent that remembers, its last numbers
    steps: 0,
};

// --- the controller

// The bits of an observation; NaN is below every threshold.
function code(observation, thresholds) {
    return thresholds.flatMap((values, d) => values.map((threshold) => Number(observation[d] >= threshold)));
}

function decide(observation, thresholds) {
    const values = withGates(circuit.lines, code(observation, thresholds));
    const bits = circuit.outputs.map((bit) => values[bit]), visible = bits.length - circuit.memory;
    const number = (bits) => bits.reduce((sum, bit, index) => sum + (bit << index), 0);
    return { values, action: number(bits.slice(0, visible)), memory: bits.slice(visible), number: number(bits) };
}

// --- the pole: CartPole of gymnasium, its constants and its Euler steps; it observes 32-bit numbers

const POLE = { gravity: 9.8, cart: 1.0, mass: 0.1, half: 0.5, force: 10.0, tau: 0.02, tilt: (12 * 2 * Math.PI) / 360, reach: 2.4 };

function stepped([x, v, angle, spin], action) {
    const force = action === 1 ? POLE.force : -POLE.force, total = POLE.mass + POLE.cart, length = POLE.mass * POLE.half;
    const cos = Math.cos(angle), sin = Math.sin(angle);
    const pushed = (force + length * spin * spin * sin) / total;
    const turned = (POLE.gravity * sin - cos * pushed) / (POLE.half * (4 / 3 - (POLE.mass * cos * cos) / total));
    const driven = pushed - (length * turned * cos) / total;
    return [x + POLE.tau * v, v + POLE.tau * driven, angle + POLE.tau * spin, spin + POLE.tau * turned];
}

const fallen = ([x, , angle]) => Math.abs(x) > POLE.reach || Math.abs(angle) > POLE.tilt;

function advance() {
    if (fallen(state.observation)) return;
    const { action, memory } = decide(observed(), state.thresholds);
    state.observation = stepped(state.observation, action);
    state.memory = memory;
    state.steps++;
    if (fallen(state.observation)) {
        player.pause();
        element("message").textContent = `It fell after ${state.steps} steps.`;
    }
    draw();
}

const observed = () => (circuit.pole ? [...state.observation.map(Math.fround), ...state.memory] : state.observation);

function beginAgain() {
    state.observation = circuit.pole ? [0, 0, 0, 0].map(() => Math.random() * 0.1 - 0.05) : names.map(() => 0);
    state.memory = Array(circuit.memory).fill(0);
    state.steps = 0;
    element("message").textContent = "";
    draw();
}

// Pushes the pole: it turns faster at once, to the right if `direction` is 1.
function push(direction) {
    state.observation[3] += direction * 0.1 * Number(element("strength").value);
    draw();
}

const player = new Player(element("play"), (count) => {
    for (; count > 0 && player.playing; count--) advance();
});

function play() {
    if (fallen(state.observation)) beginAgain();
    player.play();
}

// --- drawing

const short = (value) => value.toFixed(3);
const notes = []; // next to the inputs in the drawing
for (const mark of document.querySelectorAll("#circuit .input")) notes[mark.dataset.bit] = mark.querySelector(".note");

function draw() {
    const observation = observed(), { values, action } = decide(observation, state.thresholds);
    light(element("circuit"), values);
    if (circuit.pole) {
        element("cart").setAttribute("transform", `translate(${state.observation[0]} 0)`);
        element("pole").setAttribute("transform", `rotate(${(state.observation[2] * 180) / Math.PI})`);
    }
    element("count").textContent = circuit.pole ? `Step ${state.steps}` : "";
    element("taken").textContent = `Action: ${circuit.actions[action]}`;
    names.forEach((_name, d) => (element(`observation-${d}`).textContent = short(observation[d])));
    state.thresholds.flat().forEach((threshold, bit) => {
        const slider = element(`threshold-${bit}`);
        if (slider) element(`threshold-${bit}-text`).textContent = short(threshold);
        slider?.closest("label").classList.toggle("reached", values[bit] === 1);
        if (notes[bit]) notes[bit].textContent = `≥ ${short(threshold)}`;
    });
}

function slider(text, id, [low, high], value, change) {
    const label = document.createElement("label"), output = document.createElement("output"), input = document.createElement("input");
    Object.assign(input, { type: "range", id, min: low, max: high, step: (high - low) / 1000, value });
    output.id = `${id}-text`;
    input.addEventListener("input", () => {
        change(Number(input.value));
        draw();
    });
    label.append(`${text} `, output, input);
    return label;
}

// The range of a slider: it extends beyond the outer thresholds by their distance.
function range(values) {
    const span = values.length > 1 ? values[values.length - 1] - values[0] : Math.abs(values[0] ?? 0) || 1;
    return [(values[0] ?? 0) - span, (values[values.length - 1] ?? 0) + span];
}

// A threshold cannot pass its neighbours: the gates rely on their order.
function move(d, index, value, input) {
    const values = state.thresholds[d];
    values[index] = Math.min(Math.max(value, values[index - 1] ?? -Infinity), values[index + 1] ?? Infinity);
    input().value = values[index];
}

function resetThresholds() {
    state.thresholds = trained.map((values) => [...values]);
    trained.flat().forEach((value, bit) => element(`threshold-${bit}`) && (element(`threshold-${bit}`).value = value));
    draw();
}

let bit = 0;
names.forEach((name, d) => {
    if (circuit.pole) {
        const line = document.createElement("span");
        line.append(`${name} `, Object.assign(document.createElement("output"), { id: `observation-${d}` }));
        element("observations").append(line);
    } else {
        const label = slider(name, `look-${d}`, range(trained[d]), 0, (value) => (state.observation[d] = value));
        label.querySelector("output").id = `observation-${d}`;
        element("observations").append(label);
    }
    trained[d].forEach((value, index) => {
        const id = `threshold-${bit++}`;
        if (d >= names.length - circuit.memory) return; // a bit has no other threshold
        element("thresholds").append(slider(`${name} ≥`, id, range(trained[d]), value, (to) => move(d, index, to, () => element(id))));
    });
});

// --- controls

const ACTIONS = {
    play: () => (player.playing ? player.pause() : play()),
    step: advance,
    again: beginAgain,
    left: () => push(-1),
    right: () => push(1),
};
for (const [id, action] of Object.entries(ACTIONS)) element(id).addEventListener("click", action);
element("reset").addEventListener("click", resetThresholds);

if (circuit.pole) listenToKeys({ " ": "play", s: "step", b: "again", arrowleft: "left", arrowright: "right" });

element("scene").addEventListener("pointerdown", (event) => {
    const box = element("scene").getBoundingClientRect();
    const x = ((event.clientX - box.left) / box.width) * 6 - 3;
    push(x < state.observation[0] + Math.sin(state.observation[2]) ? 1 : -1);
});

const TEXTS = { speed: (value) => `${SPEEDS[value]} steps a second`, strength: (value) => `${(0.1 * value).toFixed(1)} rad/s` };
showRanges(TEXTS, player, SPEEDS);

for (const id of ["scene", "drive", "keys"]) circuit.pole ? element(id).removeAttribute("hidden") : element(id).setAttribute("hidden", "");
beginAgain();
if (circuit.pole && !matchMedia("(prefers-reduced-motion: reduce)").matches) play();
