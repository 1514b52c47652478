// Elements by function call: h("button", { type: "button", onclick: save }, "Save"). Text is always text, never markup.

const SVG = "http://www.w3.org/2000/svg";
const PROPERTIES = new Set(["value", "checked", "selected", "disabled", "open", "indeterminate"]);

export function h(tag, properties = {}, ...children) {
    return filled(document.createElement(tag), properties, children);
}

// The same for SVG.
export function s(tag, properties = {}, ...children) {
    return filled(document.createElementNS(SVG, tag), properties, children);
}

function filled(element, properties, children) {
    // Children first: the value of a <select> is one of its options.
    element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
    for (const [name, value] of Object.entries(properties)) {
        if (value === null || value === undefined) continue;
        if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
        else if (PROPERTIES.has(name)) element[name] = value;
        else if (value !== false) element.setAttribute(name, value === true ? "" : value);
    }
    return element;
}

// A card with a title; `name` is its class and the stem of the title's id.
export function card(name, title, ...children) {
    const id = `${name}-title`;
    return h("section", { class: `card ${name}`, "aria-labelledby": id }, h("h2", { id }, title), children);
}

// Buttons with a common name for screen readers.
export const buttonGroup = (label, ...children) => h("div", { class: "buttons", role: "group", "aria-label": label }, children);

// A label in one line with its control.
export const inline = (...children) => h("label", { class: "inline" }, children);

// A region with a scroll bar of its own, which keys can scroll.
export const scroll = (label, ...children) =>
    h("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": label }, children);

// A list of numbers with their names: {element, fill([[name, text], ...])}.
export function numberList(more = "") {
    const element = h("dl", { class: `figures ${more}` });
    const fill = (rows) => {
        if (element.children.length !== rows.length)
            element.replaceChildren(...rows.map(() => h("div", {}, h("dt", {}), h("dd", { class: "number" }))));
        rows.forEach((row, i) => row.forEach((text, part) => setText(element.children[i].children[part], text)));
    };
    return { element, fill };
}

// Fills a select with names after an option for all of them, and keeps the selected one, even if it is gone.
export function offerNames(select, all, names, least) {
    const chosen = select.value,
        known = new Set([...names, chosen].filter(Boolean));
    select.replaceChildren(h("option", { value: "" }, all), ...[...known].map((name) => h("option", { value: name }, name)));
    select.value = chosen;
    select.hidden = known.size < least;
}

// A table with a head; `name`: its class.
export const headedTable = (name, head, body) => {
    const cells = head.map((text) => h("th", { scope: "col" }, text));
    return h("table", { class: `rows ${name}` }, h("thead", {}, h("tr", {}, cells)), body);
};

// A row of a table: its head, and its cells or their contents.
export const tableRow = (head, ...cells) => {
    const cell = (content) => (content instanceof HTMLTableCellElement ? content : h("td", {}, content));
    return h("tr", {}, h("th", { scope: "row" }, head), cells.map(cell));
};

export const numberCell = (text) => h("td", { class: "number" }, text);

// Writes text only if it changes, so that screen readers and selections are not disturbed.
export function setText(element, text) {
    if (element.textContent !== String(text)) element.textContent = text;
}

let lastId = 0;

// A unique id for labels and descriptions.
export const freshId = (stem) => `${stem}-${++lastId}`;

// Resolves after a number of milliseconds.
export const pause = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));

// Calls `work` now and a number of milliseconds after each end, until the signal aborts; a hidden page waits.
export async function repeat(work, milliseconds, signal) {
    while (!signal.aborted) {
        if (!document.hidden) await work();
        await pause(milliseconds);
    }
}

// False if the system asks for less motion.
export const mayMove = () => !matchMedia("(prefers-reduced-motion: reduce)").matches;

// Limits a function to one call within `milliseconds`: further calls meanwhile become one at their end (throttling).
export function throttle(call, milliseconds, signal) {
    let isResting = false,
        again = false;
    return function throttled() {
        again = isResting;
        if (isResting) return;
        isResting = true;
        pause(milliseconds).then(() => {
            isResting = false;
            if (again && !signal.aborted) throttled();
        });
        call();
    };
}
