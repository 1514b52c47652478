"use strict";
// Shared by the scripts that drive an exported page as its user would; `errors` was begun before the page's own scripts.
const report = { errors, failures: [], width: innerWidth };
const check = (holds, what) => holds || report.failures.push(what);
const frames = async (count) => {
    for (let i = 0; i < count; i++) await new Promise(requestAnimationFrame);
};

function slide(input, value) {
    input.value = value;
    input.dispatchEvent(new Event("input"));
}

function readable() {
    for (const control of document.querySelectorAll("button, select, input, canvas[tabindex]")) {
        const name = control.getAttribute("aria-label") || control.closest("label")?.textContent || control.textContent;
        check(name.trim(), `the control ${control.id} has a name`);
    }
    check(document.documentElement.scrollWidth <= innerWidth, `the page is ${document.documentElement.scrollWidth} px wide`);
}

// Runs `drive()` and posts the report to the server.
async function prove(drive) {
    try {
        await drive();
        readable();
    } catch (error) {
        report.failures.push(`it ends early: ${error.stack ?? error}`);
    }
    await fetch("report", { method: "POST", body: JSON.stringify(report) });
}
