// The files of a job, to download, and its log.

import { address, get } from "./api.js";
import { h, repeat, setText } from "./dom.js";
import { atCheckpoints, fold } from "./fold.js";
import { bytes } from "./format.js";
import { empty } from "./notices.js";
import { isAgents } from "./progress.js";

const LOG_BYTES = 1 << 15;
const LOG_EVERY = 3000;
const SHOWN = /\.(svg|png|gif|apng)$/;

export const fileAddress = (id, name) => address(`/jobs/${id}/files/${name.split("/").map(encodeURIComponent).join("/")}`);

export const fileRow = (id, { name, size }) =>
    h("li", {}, h("a", { href: fileAddress(id, name), download: true }, name), h("span", { class: "quiet number" }, bytes(size)));

// {element, update(job)}
export function filesPanel(job, signal) {
    const list = h("ul", { class: "files" }),
        images = h("div", { class: "images" });
    const all = h("a", { class: "button", href: address(`/jobs/${job.id}/archive`), download: true, hidden: true }, "Download all");
    const { element, look } = fold("files-of", "Files", load, all, list, images);

    async function load() {
        const { files } = await get(`/jobs/${job.id}/files`);
        all.hidden = !files.length;
        list.replaceChildren(...files.map((file) => fileRow(job.id, file)));
        if (!files.length) list.replaceChildren(h("li", {}, empty("No files yet", "Files appear after the first checkpoint.")));
        if (job.kind !== "train" || isAgents(job))
            images.replaceChildren(...files.filter(({ name }) => SHOWN.test(name)).map(({ name }) => h("img", { src: fileAddress(job.id, name), alt: name })));
    }

    return { element, update: atCheckpoints(look, signal), refresh: look };
}

// The log of the workers, loaded while it is open.
export function logPanel(job, signal) {
    const text = h("pre", { class: "log scroll", tabindex: "0", role: "group", "aria-label": "Log" });
    const { element, look } = fold("log-of", "Log", load, text);

    async function load() {
        const { text: lines } = await get(`/jobs/${job.id}/log?tail=${LOG_BYTES}`, { signal });
        const atEnd = text.scrollTop + text.clientHeight >= text.scrollHeight - 4;
        setText(text, lines || "The log is still empty.");
        if (atEnd) text.scrollTop = text.scrollHeight;
    }

    repeat(look, LOG_EVERY, signal);
    return element;
}
