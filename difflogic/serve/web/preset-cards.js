// Presets as cards, each with its target.

import { h } from "./dom.js";
import { thumbnail } from "./pixels.js";

// `offers`: [{name, title, about, config, mark}], the first is selected; `chosen(offer)` is called at another choice.
export function presetCards(offers, chosen, legend = "What to learn", name = "preset") {
    return h("fieldset", { class: "presets" }, h("legend", { class: "unseen" }, legend), offers.map(card));

    function card(offer, place) {
        const onchange = () => chosen(offer);
        return h(
            "label",
            { class: "preset" },
            h("input", { type: "radio", name, value: offer.name, checked: place === 0, onchange }),
            h("span", {}, h("b", {}, offer.title ?? offer.name), h("small", {}, offer.about)),
            thumbnail({ config: offer.config, kind: offer.mark }),
        );
    }
}
