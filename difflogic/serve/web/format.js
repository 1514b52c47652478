// Numbers, times and sizes as text.

const NONE = "–";
const BYTES = ["B", "KB", "MB", "GB", "TB"];
const known = (value) => value !== null && value !== undefined && !Number.isNaN(value);

const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const short = new Intl.NumberFormat("en", { maximumSignificantDigits: 3 });

export const count = (value) => (known(value) ? whole.format(value) : NONE);

// A loss: exact if it counts cells, three digits if it is a sum of squares.
export function loss(value) {
    if (!known(value)) return NONE;
    if (Number.isInteger(value)) return whole.format(value);
    return Math.abs(value) < 1e-3 && value !== 0 ? value.toExponential(1) : short.format(value);
}

export const rate = (value) => (known(value) && value > 0 ? `${short.format(value)} epochs/s` : NONE);

export function bytes(value) {
    if (!known(value)) return NONE;
    const unit = Math.min(BYTES.length - 1, Math.floor(Math.log10(Math.max(value, 1)) / 3));
    return `${short.format(value / 1000 ** unit)} ${BYTES[unit]}`;
}

export function duration(seconds) {
    if (!known(seconds) || !Number.isFinite(seconds)) return NONE;
    if (seconds < 1) return "under 1 s";
    if (seconds < 90) return `${Math.round(seconds)} s`;
    const minutes = Math.round(seconds / 60);
    if (minutes < 90) return `${minutes} min`;
    return minutes < 48 * 60
        ? `${Math.floor(minutes / 60)} h ${minutes % 60} min`
        : `${Math.round(minutes / 1440)} days`;
}

// An ISO time as "3 min ago".
export function ago(iso) {
    if (!iso) return NONE;
    const seconds = Math.max(0, (Date.now() - Date.parse(iso)) / 1000);
    return seconds < 5 ? "just now" : `${duration(seconds)} ago`;
}

// "1 run", "2 runs".
export const plural = (number, noun) => `${count(number)} ${noun}${number === 1 ? "" : "s"}`;
