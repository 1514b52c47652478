// Words by which jobs are found again.

import { h } from "./dom.js";

// Those of a text with commas between, each once.
export const tagsOf = (text) => [...new Set(text.split(",").map((tag) => tag.trim()))].filter(Boolean);

// {element, update(job)}
export function tagList(job) {
    const element = h("ul", { class: "tags", "aria-label": "Tags" });
    let shown = null;
    function update({ tags }) {
        const now = tags.join(",");
        if (now === shown) return;
        shown = now;
        element.hidden = !tags.length;
        element.replaceChildren(...tags.map((tag) => h("li", {}, tag)));
    }
    update(job);
    return { element, update };
}
