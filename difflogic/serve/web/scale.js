// Axes: scales, ticks, and points thinned to what can be distinguished.

const DECADES = 8; // smaller values are drawn as 0

// `floor` is the power of ten that all values but 0 lie above. A solved circuit's 0 has a place a decade below it.
export const SCALES = {
    log: {
        forward: (value, floor) => (value < floor ? 0 : 1 + Math.log10(value / floor)),
        ticks(most, floor) {
            const ticks = [0];
            const step = Math.max(1, Math.ceil(Math.log10(most / floor) / 5));
            for (let power = Math.round(Math.log10(floor)); 10 ** power <= most; power += step) ticks.push(10 ** power);
            return ticks;
        },
    },
    linear: { forward: (value) => value, ticks: (most, _floor, base = 0) => round(base, most, 5) },
};

// The range of an axis: from 0 to above the highest value, or from the lowest value if it is negative.
export function rangeOf(values, scale) {
    const least = values.reduce((low, value) => (value < low ? value : low), 0);
    const most = values.reduce((high, value) => (value > high ? value : high), -Infinity);
    if (scale === "log") return [0, (most > 0 ? most : 1) * 1.3];
    if (least < 0 && most <= 0) return [least, 0];
    return [least, (most > 0 ? most : 1) * 1.05];
}

// The power of ten below all of the values that are not 0.
export function floorOf(values, most) {
    const least = values.reduce((low, value) => (value > 0 && value < low ? value : low), most);
    return 10 ** Math.floor(Math.log10(Math.max(least, most / 10 ** DECADES)) + 1e-9);
}

// The mean of each point and those up to `width` before it.
export function smoothed(points, width) {
    let first = 0,
        sum = 0;
    return points.map(([x, y], index) => {
        sum += y;
        while (points[first][0] <= x - width) sum -= points[first++][1];
        return [x, sum / (index - first + 1)];
    });
}

// About `wanted` round numbers from `from` to `to`, `least` apart or more.
export function round(from, to, wanted, least = 0) {
    const rough = Math.max(least, (to - from) / wanted);
    if (!(rough > 0)) return [from];
    const power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5].map((factor) => factor * power).find((width) => width >= rough) ?? 10 * power;
    const ticks = [];
    for (let i = Math.ceil(from / step); i * step <= to * (1 + 1e-9); i++) ticks.push(i * step);
    return ticks;
}

// At most four points per column of `points` [[x, y], ...] between two x: first, lowest, highest and last of each, and
// one beyond each end, so that the line goes on to the edge.
export function thinned(points, from, to, columns) {
    let first = lowerBound(points, from),
        last = lowerBound(points, to);
    first = Math.max(0, first - 1);
    last = Math.min(points.length, last + 2);
    if (last - first <= 4 * columns) return points.slice(first, last);
    const buckets = Map.groupBy(points.slice(first, last), ([x]) => Math.floor(((x - from) / (to - from)) * columns));
    return [...buckets.values()].flatMap((bucket) => {
        const sorted = [...bucket].sort((a, b) => a[1] - b[1]);
        const wanted = new Set([bucket[0], sorted[0], sorted.at(-1), bucket.at(-1)]);
        return bucket.filter((point) => wanted.has(point));
    });
}

// The index of the first point whose x is at least this.
function lowerBound(points, x) {
    let low = 0,
        high = points.length;
    while (low < high) {
        const middle = (low + high) >> 1;
        if (points[middle][0] < x) low = middle + 1;
        else high = middle;
    }
    return low;
}

// The point nearest to x, or undefined.
export function nearest(points, x) {
    const after = lowerBound(points, x),
        [a, b] = [points[after - 1], points[after]];
    if (!a || !b) return a ?? b;
    return x - a[0] <= b[0] - x ? a : b;
}
