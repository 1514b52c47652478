// A button that plays and pauses what moves by steps, such as cells on a grid or a pole on a cart.

const MOST_AT_ONCE = 64; // steps between two frames

export class Player {
    speed = 10; // steps a second
    playing = false;
    turn = 0; // number of the loop that plays: an earlier one stops

    /** @param {HTMLElement} button @param {(count: number) => unknown} advance takes `count` steps */
    constructor(button, advance) {
        this.button = button;
        this.advance = advance;
    }

    /** @param {boolean} playing */
    set(playing) {
        this.playing = playing;
        this.turn++;
        this.button.textContent = playing ? "Pause" : "Play";
        this.button.setAttribute("aria-pressed", String(playing));
    }

    pause() {
        this.set(false);
    }

    async play() {
        this.set(true);
        const { turn } = this;
        let before = performance.now(),
            due = 1;
        for (;;) {
            const now = await new Promise(requestAnimationFrame);
            if (this.turn !== turn) return;
            due = Math.min(due + (Math.max(0, now - before) / 1000) * this.speed, MOST_AT_ONCE);
            before = now;
            if (due >= 1) await this.advance(Math.floor(due));
            due %= 1;
        }
    }
}
