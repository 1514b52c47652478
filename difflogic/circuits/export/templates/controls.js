// Controls of exported pages: keys that press buttons, and ranges whose values are shown.

const element = (id) => document.getElementById(id);

// Lets keys press buttons: `keys` has the id of the button of each key.
function listenToKeys(keys) {
    document.addEventListener("keydown", (event) => {
        if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("button, select, input, summary")) return;
        const button = keys[event.key.toLowerCase()];
        if (!button) return;
        event.preventDefault();
        element(button).click();
    });
}

// Shows the values of ranges as `texts` by id; that of `speed` is a place in `speeds`, in steps a second, of the player.
function showRanges(texts, player, speeds) {
    for (const [id, text] of Object.entries(texts)) {
        const show = () => {
            if (id === "speed") player.speed = speeds[element(id).value];
            element(`${id}-text`).textContent = text(element(id).value);
            element(id).setAttribute("aria-valuetext", text(element(id).value));
        };
        element(id).addEventListener("input", show);
        show();
    }
}

