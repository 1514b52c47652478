// A place for a file: drag it here or choose it; a picture is shown, and can be pasted too.

import { h, setText } from "./dom.js";

const PICTURES = "image/png,image/gif,image/jpeg,image/bmp,image/webp,.ppm,.rle,.cells,.lif,.mc";

// {element, file(): File or null, take(File or null)}; `changed()` is called when there is another picture.
export function dropZone(title, changed, types = PICTURES) {
    const isPicture = types === PICTURES,
        advice = isPicture ? "or choose a file; pasting works too" : "or choose a file";
    /** @type {File | null} */
    let file = null;
    const input = h("input", { type: "file", accept: types, onchange: () => take(input.files[0]) });
    const words = h("span", { class: "quiet" });
    const away = h("button", { type: "button", hidden: true, onclick: () => take(null) }, "Remove it");
    const picture = h("img", { alt: "", hidden: true, onerror: () => (picture.hidden = true) });
    const zone = h("label", { class: "drop" }, picture, h("b", {}, title), words, input);
    const element = h("div", { class: "drop-zone" }, zone, away);

    function take(given) {
        if (picture.src) URL.revokeObjectURL(picture.src);
        file = given ?? null;
        away.hidden = !file;
        picture.hidden = !file || !isPicture;
        if (file) picture.src = URL.createObjectURL(file);
        else {
            picture.removeAttribute("src");
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
