// Every file of a job, to download.

import { address, get } from "./api.js";
import { fold, h } from "./dom.js";
import { bytes } from "./format.js";
import { empty, errorPlace } from "./notices.js";
import { isAgents } from "./progress.js";

const SHOWN = /\.(svg|png|gif|apng)$/;

export const fileAddress = (id, name) => address(`/jobs/${id}/files/${name.split("/").map(encodeURIComponent).join("/")}`);

export function filesPanel(job) {
    const place = errorPlace();
    const list = h("ul", { class: "files" }),
        pictures = h("div", { class: "pictures" });
    const all = h("a", { class: "button", href: address(`/jobs/${job.id}/archive`), download: true, hidden: true }, "Download all");
    const element = fold("files-of", "Files", place.element, all, list, pictures);
    element.addEventListener("toggle", load);

    async function load() {
        if (!element.open) return;
        try {
            const { files } = await get(`/jobs/${job.id}/files`);
            place.clear();
            all.hidden = !files.length;
            list.replaceChildren(...files.map(row));
            if (!files.length) list.replaceChildren(h("li", {}, empty("No files yet", "Files appear after the first checkpoint.")));
            if (job.kind !== "train" || isAgents(job))
                pictures.replaceChildren(...files.filter(({ name }) => SHOWN.test(name)).map(({ name }) => h("img", { src: fileAddress(job.id, name), alt: name })));
        } catch (error) {
            place.show(error);
        }
    }

    const row = ({ name, size }) => h("li", {}, h("a", { href: fileAddress(job.id, name), download: true }, name), h("span", { class: "quiet number" }, bytes(size)));
    return { element, load };
}
