// A chart as a file: SVG and PNG of the visible part, and its values as CSV.

import { h, s } from "./dom.js";

const STYLES = ["fill", "fill-opacity", "stroke", "stroke-width", "stroke-dasharray", "stroke-linejoin", "opacity"];
const TEXT = ["font-family", "font-size", "font-weight"];
const SHARPER = 2;

// Buttons that save a chart: `values` gives rows of texts and numbers, the first of them the names of the columns.
export function savers(title, svg, values) {
    const name = title
        .toLowerCase()
        .replaceAll(/[^a-z0-9]+/g, "-")
        .replaceAll(/^-|-$/g, "");
    const save = (kind, make) => {
        const onclick = async () => give(`${name}.${kind.toLowerCase()}`, await make());
        return h("button", { type: "button", class: "plain", "aria-label": `Save as ${kind}: ${title}`, onclick }, kind);
    };
    return h("div", { class: "savers", role: "group", "aria-label": `Save: ${title}` }, [
        save("SVG", () => new Blob([asSvg(svg)], { type: "image/svg+xml" })),
        save("PNG", () => asPng(svg)),
        save("CSV", () => new Blob([asCsv(values())], { type: "text/csv" })),
    ]);
}

// Values are quoted if necessary, and never a formula for a spreadsheet.
export function asCsv(rows) {
    const cell = (value) => {
        if (typeof value === "number") return String(value);
        const text = /^[=+\-@\t\r]/.test(value) ? `'${value}` : value;
        return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
    };
    return rows.map((row) => `${row.map(cell).join(",")}\n`).join("");
}

// The drawing with its styles as attributes: a file has no style sheet, and the page's policy forbids inline styles.
export function asSvg(svg) {
    const copy = svg.cloneNode(true);
    const { width, height } = svg.viewBox.baseVal;
    const styled = svg.querySelectorAll("*");
    copy.querySelectorAll("*").forEach((element, index) => {
        const style = getComputedStyle(styled[index]);
        const names = element.localName === "text" ? [...STYLES, ...TEXT] : STYLES;
        for (const name of names) element.setAttribute(name, style.getPropertyValue(name));
    });
    for (const name of ["class", "tabindex", "role"]) copy.removeAttribute(name);
    for (const [name, value] of Object.entries({ width, height })) copy.setAttribute(name, value);
    copy.prepend(s("rect", { width, height, fill: colourBehind(svg) }));
    return new XMLSerializer().serializeToString(copy);
}

export async function asPng(svg) {
    const { width, height } = svg.viewBox.baseVal;
    const image = new Image();
    image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(asSvg(svg))}`;
    await image.decode();
    const canvas = h("canvas", { width: width * SHARPER, height: height * SHARPER });
    canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
    return new Promise((resolve) => canvas.toBlob(resolve, "image/png"));
}

function colourBehind(element) {
    for (let parent = element; parent; parent = parent.parentElement) {
        const colour = getComputedStyle(parent).backgroundColor;
        if (colour !== "transparent" && !/, 0\)$/.test(colour)) return colour;
    }
    return "white";
}

// A download.
export function give(name, blob) {
    const link = h("a", { href: URL.createObjectURL(blob), download: name });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 60000); // a large file may take a while
}
