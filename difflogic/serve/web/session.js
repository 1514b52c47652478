// Sign-in with a token.

import { signIn } from "./api.js";
import { h } from "./dom.js";
import { errorPlace, guarded } from "./notices.js";

export function signInView(root, _signal, entered) {
    const place = errorPlace();
    const token = h("input", { type: "password", name: "token", autocomplete: "current-password", required: true, spellcheck: "false" });
    const button = h("button", { class: "primary" }, "Sign in");
    async function submit(event) {
        event.preventDefault();
        const session = await guarded(button, place, () => signIn(token.value.trim()));
        if (session) entered(session);
        else token.select();
    }
    const form = h(
        "form",
        { class: "card sign-in", onsubmit: submit },
        h("h1", {}, "Sign in"),
        h("p", { class: "quiet" }, "Open the link that difflogic serve printed, or ask the operator of the server for a token."),
        h("label", { class: "field" }, "Token", token),
        place.element,
        h("div", { class: "buttons" }, button),
    );
    root.append(form);
    token.focus();
}
