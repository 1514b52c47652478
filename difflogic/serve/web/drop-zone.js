// A zone for a file, which is dragged here or chosen; an image is shown, and can be pasted too.

import { h, setText } from "./dom.js";

const IMAGES = "image/png,image/gif,image/jpeg,image/bmp,image/webp,.ppm,.rle,.cells,.lif,.mc";

// {element, file(): File or null, take(File or null)}; `changed()` is called when the file changes.
export function dropZone(title, changed, types = IMAGES) {
    const isImage = types === IMAGES,
        advice = isImage ? "or choose a file; pasting works too" : "or choose a file";
    /** @type {File | null} */
    let file = null;
    const input = h("input", { type: "file", accept: types, onchange: () => take(input.files[0]) });
    const words = h("span", { class: "quiet" });
    const remove = h("button", { type: "button", hidden: true, onclick: () => take(null) }, "Remove");
    const image = h("img", { alt: "", hidden: true, onerror: () => (image.hidden = true) });
    const zone = h("label", { class: "drop" }, image, h("b", {}, title), words, input);
    const element = h("div", { class: "drop-zone" }, zone, remove);

    function take(chosen) {
        if (image.src) URL.revokeObjectURL(image.src);
        file = chosen ?? null;
        remove.hidden = !file;
        image.hidden = !file || !isImage;
        if (file) image.src = URL.createObjectURL(file);
        else {
            image.removeAttribute("src");
            input.value = "";
        }
        setText(words, file ? file.name : advice);
        changed();
    }

    for (const type of ["dragenter", "dragover"])
        zone.addEventListener(type, (event) => {
            event.preventDefault();
            zone.classList.add("over");
        });
    for (const type of ["dragleave", "drop"]) zone.addEventListener(type, () => zone.classList.remove("over"));
    zone.addEventListener("drop", (event) => {
        event.preventDefault();
        if (event.dataTransfer.files[0]) take(event.dataTransfer.files[0]);
    });

    setText(words, advice);
    return { element, file: () => file, take };
}
