// The visible range of epochs: one for all charts of a page, so that they zoom and pan together.

const LEAST = 4; // epochs

export class Window extends EventTarget {
    constructor() {
        super();
        this.first = this.from = 0;
        this.last = this.to = 1;
        /** @type {number | null} */
        this.cursor = null;
        this.isComplete = true;
        /** @type {number[]} */
        this.begins = []; // first epochs of attempts
    }

    // Sets the complete range; if all of it was visible, all of it stays visible.
    extend(first, last) {
        if (first === this.first && last === this.last) return;
        Object.assign(this, { first, last });
        if (this.isComplete) this.show(first, last);
    }

    show(from, to) {
        const width = Math.min(Math.max(to - from, LEAST), Math.max(this.last - this.first, LEAST));
        from = Math.min(Math.max(from, this.first), Math.max(this.first, this.last - width));
        Object.assign(this, { from, to: from + width, isComplete: width >= this.last - this.first });
        this.dispatchEvent(new Event("change"));
    }

    // A `factor` below 1 zooms in; `around` keeps its place.
    zoom(factor, around = this.cursor ?? (this.from + this.to) / 2) {
        this.show(around - (around - this.from) * factor, around + (this.to - around) * factor);
    }

    pan(share) {
        const by = share * (this.to - this.from);
        this.show(this.from + by, this.to + by);
    }

    all() {
        this.show(this.first, this.last);
    }

    point(cursor) {
        if (cursor !== null) cursor = Math.round(Math.min(Math.max(cursor, this.from), this.to));
        if (cursor === this.cursor) return;
        this.cursor = cursor;
        this.dispatchEvent(new Event("point"));
    }
}
