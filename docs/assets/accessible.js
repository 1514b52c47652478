// What the theme makes in the browser leaves to be done: its buttons that copy a block are each in a landmark without a
// name, and a wide table scrolls only with a mouse.
new MutationObserver(() => {
    for (const nav of document.querySelectorAll("nav.md-code__nav:not([role])")) nav.setAttribute("role", "presentation");
    for (const box of document.querySelectorAll(".md-typeset__scrollwrap:not([tabindex])"))
        if (box.scrollWidth > box.clientWidth) box.tabIndex = 0;
}).observe(document.body, { childList: true, subtree: true });
