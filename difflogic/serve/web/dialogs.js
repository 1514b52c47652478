// Confirmations and short questions in the browser's own <dialog>, which holds the focus.

import { h, freshId } from "./dom.js";

// Resolves to true if the answer is yes.
export function confirmed(title, text, yes) {
    return answered(title, [h("p", {}, text)], yes, () => true, "danger");
}

// Resolves to the text, or to undefined; `required`: the text must not be empty.
export function asked(title, label, value, yes, required = true) {
    const input = h("input", { value, required, maxlength: required ? 100 : 2000, autofocus: true });
    return answered(title, [h("label", { class: "field" }, label, input)], yes, () => input.value.trim());
}

// The distinct tags of a text with commas.
export const tagsOf = (text) => [...new Set(text.split(",").map((tag) => tag.trim()))].filter(Boolean);

// Resolves to the result of `answer()`, or to undefined; `kind`: the class of the button.
export function answered(title, content, yes, answer, kind = "primary") {
    return new Promise((resolve) => {
        const id = freshId("dialog");
        const cancel = h("button", { type: "button", onclick: () => dialog.close("") }, "Cancel");
        const buttons = h("div", { class: "buttons end" }, cancel, h("button", { class: kind, value: "yes" }, yes));
        const form = h("form", { method: "dialog" }, h("h2", { id }, title), content, buttons);
        const dialog = h("dialog", { "aria-labelledby": id }, form);
        dialog.addEventListener("close", () => {
            dialog.remove();
            resolve(dialog.returnValue === "yes" ? answer() : undefined);
        });
        document.body.append(dialog);
        dialog.showModal();
    });
}
