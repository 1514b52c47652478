// Lines and bands over epochs as SVG: zoom and pan by wheel, pinch, drag or keys, and a cursor line that reads off values.

import { h, s, scroll, setText, headedTable } from "./dom.js";
import { count } from "./format.js";
import { savers } from "./saving.js";
import { floorOf, nearest, rangeOf, round, SCALES, thinned } from "./scale.js";
import { steer } from "./steering.js";

const MARGIN = { top: 10, right: 20, bottom: 26, left: 46 };
const DOT = 4;
const DOTS_UP_TO = 80;
const COLUMNS = 50; // of the table, each of four rows at most

export class Chart {
    // `span` is a Window; options: title, label (for screen readers), height, scale, write (a value as text).
    constructor(span, { title, label, height = 220, scale = "log", write }) {
        this.span = span;
        this.height = height;
        this.scale = scale;
        this.write = write;
        this.fill = () => {}; // the table
        this.series = [];
        this.width = 600;
        this.x = this.y = (value) => value; // from values to pixels, as of the last drawing
        this.svg = s("svg", {
            class: "chart",
            tabindex: "0",
            role: "application",
            "aria-label": `${label} Left and right arrows read off values, plus and minus zoom, Page Up and Page Down move, 0 shows all.`,
        });
        this.legend = h("ul", { class: "legend" });
        this.marks = s("g", {});
        this.unit = "epoch";
        this.element = h(
            "figure",
            { class: "figure" },
            h("figcaption", {}, h("h3", {}, title), this.legend, savers(title, this.svg, () => this.values())),
            this.svg,
            this.table(title),
        );
        this.due = false;
        span.addEventListener("change", () => this.draw());
        span.addEventListener("point", () => this.point());
        new ResizeObserver(() => this.draw()).observe(this.svg);
        steer(this.svg, span, () => ({ left: MARGIN.left, width: this.width - MARGIN.left - MARGIN.right }));
    }

    // [{name, style (a class of the style sheet), points [[x, y], ...], dots, low (of a band: [[x, y], ...]), spread}]
    show(series) {
        this.series = series;
        this.draw();
    }

    use(scale) {
        this.scale = scale;
        this.draw();
    }

    draw() {
        if (this.due) return;
        this.due = true;
        requestAnimationFrame(() => {
            this.due = false;
            this.redraw();
        });
    }

    redraw() {
        // Measured at each drawing: an observer reports 0 for a hidden panel, until the next change of size.
        this.width = Math.max(240, Math.round(this.svg.getBoundingClientRect().width));
        const { span, width, height } = this;
        this.svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
        this.svg.setAttribute("height", height);
        const inner = { width: width - MARGIN.left - MARGIN.right, height: height - MARGIN.top - MARGIN.bottom };
        this.x = (value) => MARGIN.left + ((value - span.from) / (span.to - span.from || 1)) * inner.width;
        const seen = this.series.map((series) => thinned(series.points, span.from, span.to, inner.width));
        const { forward, ticks } = SCALES[this.scale];
        const lows = this.series.map(({ low }) => thinned(low ?? [], span.from, span.to, inner.width));
        const values = [...seen, ...lows].flatMap((points) => points.map(([, y]) => y));
        const [base, top] = rangeOf(values, this.scale);
        const floor = floorOf(values, top);
        this.y = (value) => MARGIN.top + inner.height * (1 - forward(Math.max(0, value - base), floor) / forward(top - base, floor));
        // Clips what is beyond the range, but not the dots at its ends.
        const [left, visible] = [MARGIN.left - DOT, inner.width + 2 * DOT];
        const lines = this.series.map((series, index) => this.drawn(series, seen[index]));
        const plot = s("svg", { x: left, width: visible, height, viewBox: `${left} 0 ${visible} ${height}`, overflow: "hidden" }, lines);
        this.svg.replaceChildren(...this.axes(ticks(top, floor, base), inner), plot, this.marks);
        this.point();
        this.fill();
    }

    // Moves the cursor without drawing the lines again.
    point() {
        this.marks.replaceChildren(...this.cursor());
        this.read();
    }

    // The series as rows for a file or a table, a row for each point.
    values(series = this.series) {
        const rows = series.flatMap(({ name, points, low, spread }) => {
            if (!low) return points.map((point) => [name, ...point]);
            if (!spread) return points.map(([x, y], index) => [name, x, y - low[index][1]]);
            const edges = { highest: points, lowest: low };
            return Object.entries(edges).flatMap(([edge, line]) => line.map((point) => [`${name}, ${edge}`, ...point]));
        });
        return [["series", this.unit, "value"], ...rows];
    }

    // The visible values as a table, for screen readers; filled while it is open.
    table(title) {
        const rows = h("div", {});
        const cell = (value) => (typeof value === "number" ? h("td", { class: "number" }, this.write.value(value)) : h("td", {}, value));
        this.fill = () => {
            if (!details.open) return;
            const seen = this.series.map((line) => (line.low ? line : { ...line, points: thinned(line.points, this.span.from, this.span.to, COLUMNS) }));
            const [head, ...values] = this.values(seen);
            rows.replaceChildren(headedTable("", head, h("tbody", {}, values.map((row) => h("tr", {}, row.map(cell))))));
        };
        const details = h("details", { ontoggle: this.fill }, h("summary", {}, "The same as a table"), scroll(`Values: ${title}`, rows));
        return details;
    }

    axes(ticks, inner) {
        const right = MARGIN.left + inner.width,
            bottom = MARGIN.top + inner.height;
        const rows = ticks.map((tick) => [
            s("line", { class: "rule", x1: MARGIN.left, x2: right, y1: this.y(tick), y2: this.y(tick) }),
            s("text", { class: "tick", x: MARGIN.left - 8, y: this.y(tick) + 4, "text-anchor": "end" }, this.write.tick(tick)),
        ]);
        const columns = round(this.span.from, this.span.to, Math.max(2, inner.width / 110), 1).map((tick) =>
            s("text", { class: "tick", x: this.x(tick), y: bottom + 18, "text-anchor": "middle" }, count(tick)),
        );
        const begins = this.span.begins.filter((begin) => begin > this.span.from && begin < this.span.to);
        const marks = begins.map((begin) => s("line", { class: "rule attempt", x1: this.x(begin), x2: this.x(begin), y1: MARGIN.top, y2: bottom }));
        return [...rows.flat(), ...columns, ...marks];
    }

    drawn({ style, dots, low }, points) {
        if (!points.length) return null;
        const path = (line) => line.map(([x, y]) => `${this.x(x).toFixed(1)} ${this.y(y).toFixed(1)}`).join("L");
        if (low) {
            const back = thinned(low, this.span.from, this.span.to, this.width).reverse();
            return s("path", { class: `band ${style}`, d: `M${path(points)}L${path(back)}Z` });
        }
        const line = s("path", { class: `line ${style}`, d: `M${path(points)}` });
        if (points.length > 1 && (!dots || points.length > DOTS_UP_TO)) return line;
        return [line, points.map(([x, y]) => s("circle", { class: `dot ${style}`, cx: this.x(x), cy: this.y(y), r: DOT - 1 }))];
    }

    cursor() {
        const { cursor, from, to } = this.span;
        if (cursor === null || cursor < from || cursor > to) return [];
        const x = this.x(cursor);
        const lines = this.series.filter(({ points, low }) => points.length && !low);
        const dots = lines.map(({ style, points }) => {
            const [x, y] = nearest(points, cursor);
            return s("circle", { class: `dot ${style}`, cx: this.x(x), cy: this.y(y), r: DOT });
        });
        return [s("line", { class: "cursor", x1: x, x2: x, y1: MARGIN.top, y2: this.height - MARGIN.bottom }), ...dots];
    }

    // The legend, with the values at the cursor or the last ones.
    read() {
        const named = this.series.filter(({ isUnnamed }) => !isUnnamed);
        while (this.legend.children.length > named.length) this.legend.lastChild.remove();
        named.forEach((line, index) => {
            if (!this.legend.children[index]) this.legend.append(h("li", {}, h("span", {}), h("b", {})));
            const item = this.legend.children[index];
            item.className = line.style;
            setText(item.firstChild, line.name);
            setText(item.lastChild, this.valueOf(line));
        });
    }

    // The value at the cursor; of a band the height, or both edges if `spread` is set.
    valueOf({ points, low, spread }) {
        const at = this.span.cursor ?? points.at(-1)?.[0];
        const point = nearest(points, at);
        if (!point) return "";
        const { value } = this.write,
            from = low ? nearest(low, at)[1] : 0;
        return spread ? `${value(from)} to ${value(point[1])}` : value(point[1] - from);
    }
}
