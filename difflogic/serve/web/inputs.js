// Labelled inputs of a form, and what is in them.

import { freshId, h } from "./dom.js";

export function textField(name, label, properties = {}) {
    return h("label", { class: "field" }, label, h("input", { name, autocomplete: "off", ...properties }));
}

export const numberField = (name, label, placeholder) => textField(name, label, { inputmode: "decimal", placeholder });

// `choices`: [[value, words], ...]
export function selectField(name, label, choices) {
    const options = choices.map(([value, words]) => h("option", { value }, words));
    return h("label", { class: "field" }, label, h("select", { name }, options));
}

// A field with a sentence below it.
export function hinted(field, words) {
    const id = freshId("hint");
    field.querySelector("input, select, textarea").setAttribute("aria-describedby", id);
    return h("div", { class: "field" }, field, h("p", { id, class: "hint" }, words));
}

export const checkField = (name, label) =>
    h("label", { class: "check" }, h("input", { type: "checkbox", name }), h("span", {}, label));

// The text of a field inside `element`; undefined where there is none.
export const textOf = (element, name) => element.querySelector(`[name="${name}"]`).value.trim() || undefined;

// The same as a number; what is none goes as it is, so that the server says what it expected.
export function numberOf(element, name) {
    const text = textOf(element, name);
    return text === undefined || Number.isNaN(Number(text)) ? text : Number(text);
}
