// A job as somebody with a link to it sees it: to be read, without signing in.

import { post } from "./api.js";
import { h } from "./dom.js";
import { jobView } from "./job-view.js";
import { patiently } from "./notices.js";

export async function sharedView(root, signal, id, _, token) {
    const words = h("p", { class: "quiet", "aria-busy": "true" }, "Loading…");
    root.append(h("h1", {}, "A shared job"), words);
    try {
        if (token) {
            const away = (error) => words.replaceChildren(error.message);
            await patiently(() => post("/session/link", { token }, { signal }), away, signal);
            // Out of the address bar and the history: from here on a cookie opens it.
            history.replaceState(null, "", `#/shared/${id}`);
        }
        root.replaceChildren();
        await jobView(root, signal, id, null, null, true);
    } catch (error) {
        if (!signal.aborted) words.replaceWith(h("p", { class: "error", role: "alert" }, error.message));
    }
}
