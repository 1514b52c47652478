// Zoom, pan and cursor of a chart by mouse, fingers and keys.

const ZOOM = 0.7;

// `span` is a Window; `plot()` returns the place of its epochs on the element: {left, width} in pixels.
export function steer(element, span, plot) {
    const fingers = new Map();
    const epoch = (clientX) => {
        const { left, width } = plot();
        return span.from + ((clientX - element.getBoundingClientRect().left - left) / width) * (span.to - span.from);
    };

    element.addEventListener("keydown", (event) => {
        if (event.ctrlKey || event.metaKey || event.altKey) return;
        const step = Math.max(1, (span.to - span.from) / 100) * (event.shiftKey ? 10 : 1);
        const action = {
            ArrowLeft: () => span.point((span.cursor ?? span.to) - step),
            ArrowRight: () => span.point((span.cursor ?? span.from) + step),
            PageUp: () => span.pan(-0.5),
            PageDown: () => span.pan(0.5),
            Escape: () => span.point(null),
            "+": () => span.zoom(ZOOM),
            "=": () => span.zoom(ZOOM),
            "-": () => span.zoom(1 / ZOOM),
            0: () => span.all(),
        }[event.key];
        if (!action) return;
        event.preventDefault();
        action();
    });

    // The wheel alone scrolls the page, unless the chart was chosen by a click or by the keyboard.
    element.addEventListener(
        "wheel",
        (event) => {
            if (!event.ctrlKey && document.activeElement !== element) return;
            event.preventDefault();
            if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) span.pan(event.deltaX / plot().width);
            else span.zoom(Math.exp(event.deltaY / 400), epoch(event.clientX));
        },
        { passive: false },
    );

    element.addEventListener("pointerdown", (event) => {
        fingers.set(event.pointerId, event.clientX);
        element.setPointerCapture(event.pointerId);
    });
    element.addEventListener("pointermove", (event) => {
        const before = fingers.get(event.pointerId);
        if (before === undefined || (fingers.size === 1 && span.isComplete)) span.point(epoch(event.clientX));
        else if (fingers.size === 1) span.pan((before - event.clientX) / plot().width);
        else if (fingers.size === 2) pinch(event, before);
        if (before !== undefined) fingers.set(event.pointerId, event.clientX);
    });
    for (const type of ["pointerup", "pointercancel"])
        element.addEventListener(type, (event) => fingers.delete(event.pointerId));
    element.addEventListener("pointerleave", () => span.point(null));
    element.addEventListener("dblclick", () => span.all());

    function pinch(event, before) {
        const [other] = [...fingers].filter(([id]) => id !== event.pointerId).map(([, x]) => x);
        const [near, far] = [Math.abs(before - other), Math.abs(event.clientX - other)];
        if (near > 0 && far > 0) span.zoom(near / far, epoch(other));
    }
}
