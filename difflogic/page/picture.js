// Reads an image file as cells of eight colours, by the rules of difflogic/config/picture_file.py. It is scaled down like
// Pillow, up to one of 255 levels (Pillow's versions differ in rounding), and centred in the grid as by `_centred` of
// difflogic/config/customise.py.

const MAX_PIXELS = 4096 * 4096; // as for the command
const FORMATS = "PNG, GIF, JPEG, BMP or WEBP";
const THRESHOLD = 0.26 * 255; // a cell is on above this brightness, and opaque above this opacity
const [WHITE, BLUE] = [7, 4];
const LOBES = 3; // of Lanczos
const GAP = 2; // Pillow averages blocks of pixels first, as long as this factor is left for Lanczos
const PRECISION = 2 ** 22; // denominator of the weights

/** @typedef {{ width: number, height: number, data: Uint8Array | Uint8ClampedArray }} Pixels  RGBA, four bytes a pixel */

/**
 * Returns the cells of an image file, row by row, each the sum of 1 for red, 2 for green and 4 for blue.
 * @param {File} file
 * @param {number} width of the grid
 * @param {number} height
 * @returns {Promise<{ cells: Uint8Array, isInverted: boolean }>}
 * @throws {Error} whose message is a sentence for the visitor
 */
export async function cellsOfFile(file, width, height) {
    const name = `\u2068${file.name}\u2069`; // isolates names that are written from right to left
    if (file.type === "image/svg+xml") throw new Error(`${name} describes shapes instead of pixels: save it as ${FORMATS}.`);
    const bitmap = await createImageBitmap(file, { premultiplyAlpha: "none", colorSpaceConversion: "none" }).catch(() => {
        throw new Error(`${name} is not an image that can be read: expected ${FORMATS}, undamaged.`);
    });
    const sides = `${bitmap.width}x${bitmap.height}`;
    if (bitmap.width * bitmap.height > MAX_PIXELS) {
        bitmap.close();
        throw new Error(`${name} is ${sides} pixels, more than ${MAX_PIXELS.toLocaleString("en")}: scale it down first.`);
    }
    const pixels = fitted(pixelsOf(bitmap), width, height),
        { colours, isInverted } = coloured(pixels),
        cells = centred(colours, pixels, width, height);
    if (!cells.some(Boolean)) throw new Error(`${name} has no pixel that is on: all are transparent or too dark.`);
    if (cells.every((cell) => cell === cells[0])) throw new Error(`${name} is read as a single colour: expected at least two.`);
    return { cells, isInverted };
}

/** @param {ImageBitmap} bitmap */
function pixelsOf(bitmap) {
    const { width, height } = bitmap;
    const context = /** @type {OffscreenCanvasRenderingContext2D} */ (new OffscreenCanvas(width, height).getContext("2d"));
    context.drawImage(bitmap, 0, 0);
    bitmap.close();
    return { width, height, data: context.getImageData(0, 0, width, height).data };
}

// Centres the cells; an odd row or column is at the bottom or right.
/** @param {number[]} colours @param {Pixels} pixels @param {number} width @param {number} height */
function centred(colours, pixels, width, height) {
    const cells = new Uint8Array(width * height),
        left = (width - pixels.width) >> 1,
        above = (height - pixels.height) >> 1;
    colours.forEach((cell, i) => {
        cells[(above + Math.floor(i / pixels.width)) * width + left + (i % pixels.width)] = cell;
    });
    return cells;
}

// Opaque pixels are on if others are transparent; without transparency, an image that is dark on light is inverted.
/** @param {Pixels} pixels @returns {{ colours: number[], isInverted: boolean }} */
function coloured({ width, height, data }) {
    const opaque = Array.from({ length: width * height }, (_, i) => data[4 * i + 3] > THRESHOLD);
    const read = (/** @type {boolean} */ isInverted) =>
        opaque.map((isOpaque, i) => {
            let rgb = Array.from(data.subarray(4 * i, 4 * i + 3));
            const shift = 255 - Math.min(...rgb) - Math.max(...rgb);
            if (isInverted) rgb = rgb.map((value) => value + shift);
            const least = Math.max(THRESHOLD, Math.max(...rgb) / 2);
            return rgb.reduce((code, value, bit) => code | (Number(isOpaque && value > least) << bit), 0);
        });
    const colours = read(false),
        isInverted = opaque.every(Boolean) && isDarkOnLight(colours, width);
    if (isInverted) return { colours: read(true), isInverted };
    const dark = opaque.every(Boolean) ? 0 : colours.includes(WHITE) ? BLUE : WHITE;
    return { colours: colours.map((colour, i) => (opaque[i] ? colour || dark : 0)), isInverted };
}

/** @param {number[]} cells @param {number} width */
function isDarkOnLight(cells, width) {
    const share = (/** @type {number[]} */ some) => some.filter((cell) => cell === WHITE).length / some.length;
    const ends = [cells.slice(0, width), cells.slice(-width)],
        sides = [0, width - 1].map((x) => cells.filter((_, i) => i % width === x));
    return share([...ends, ...sides].flat()) > 0.9 && share(cells) > 0.5 && share(cells) < 1;
}

// `Image.thumbnail` of Pillow: scales down, and preserves the aspect ratio.
/** @param {Pixels} pixels @param {number} width @param {number} height @returns {Pixels} */
export function fitted(pixels, width, height) {
    if (width >= pixels.width && height >= pixels.height) return pixels;
    const aspect = pixels.width / pixels.height;
    const nearest = (/** @type {number} */ side, /** @type {(n: number) => number} */ error) => {
        const [low, high] = [Math.floor(side), Math.ceil(side)];
        return Math.max(1, error(low) <= error(high) ? low : high);
    };
    if (width / height >= aspect) width = nearest(height * aspect, (n) => Math.abs(aspect - n / height));
    else height = nearest(width / aspect, (n) => (n === 0 ? 0 : Math.abs(aspect - width / n)));
    if (width === pixels.width && height === pixels.height) return pixels;
    return divided(resized(multiplied(pixels), width, height));
}

// Premultiplies colours by opacity, so that transparent pixels do not contribute; `divided` is the inverse.
/** @param {Pixels} pixels */
function multiplied({ width, height, data }) {
    const products = Uint8Array.from(data, (value, i) => {
        const product = value * data[i | 3] + 128;
        return i % 4 === 3 ? value : (product + (product >> 8)) >> 8;
    });
    return { width, height, data: products };
}

/** @param {Pixels} pixels */
function divided({ width, height, data }) {
    const quotients = Uint8Array.from(data, (value, i) => {
        const opacity = data[i | 3];
        return i % 4 === 3 || opacity === 0 ? value : Math.min(255, Math.floor((255 * value) / opacity));
    });
    return { width, height, data: quotients };
}

/** @param {Pixels} pixels @param {number} width @param {number} height */
function resized(pixels, width, height) {
    const across = Math.floor(pixels.width / width / GAP) || 1,
        down = Math.floor(pixels.height / height / GAP) || 1;
    const { data, ...reduced } = across > 1 || down > 1 ? averaged(pixels, across, down) : pixels;
    const columns = lanczos(reduced.width, pixels.width / across, width),
        rows = lanczos(reduced.height, pixels.height / down, height);
    const narrow = new Uint8Array(4 * width * reduced.height),
        scaled = new Uint8Array(4 * width * height);
    for (let y = 0; y < reduced.height; y++)
        for (let i = 0; i < 4 * width; i++)
            narrow[4 * width * y + i] = weighed(columns[i >> 2], (x) => data[4 * (y * reduced.width + x) + (i & 3)]);
    for (let y = 0; y < height; y++)
        for (let i = 0; i < 4 * width; i++) scaled[4 * width * y + i] = weighed(rows[y], (v) => narrow[4 * width * v + i]);
    return { width, height, data: scaled };
}

// Averages blocks; those at the right and bottom may be smaller.
/** @param {Pixels} pixels @param {number} across @param {number} down */
function averaged(pixels, across, down) {
    const width = Math.ceil(pixels.width / across),
        height = Math.ceil(pixels.height / down),
        data = new Uint8Array(4 * width * height);
    for (let i = 0; i < data.length; i++) {
        const left = ((i >> 2) % width) * across,
            above = Math.floor((i >> 2) / width) * down;
        const right = Math.min(left + across, pixels.width),
            below = Math.min(above + down, pixels.height),
            count = (right - left) * (below - above);
        let sum = count >> 1;
        for (let y = above; y < below; y++) for (let x = left; x < right; x++) sum += pixels.data[4 * (y * pixels.width + x) + (i & 3)];
        data[i] = Math.floor((sum * Math.floor(Math.fround(2 ** 24 / count))) / 2 ** 24);
    }
    return { width, height, data };
}

/** @typedef {{ first: number, weights: number[] }} Weights */

// Returns the source pixels and weights of each new pixel.
/** @param {number} size number of source pixels @param {number} length the part of them that is scaled @param {number} count number of new pixels @returns {Weights[]} */
function lanczos(size, length, count) {
    const scale = length / count,
        wide = Math.max(scale, 1),
        support = LOBES * wide;
    return Array.from({ length: count }, (_, i) => {
        const centre = (i + 0.5) * scale,
            first = Math.max(0, Math.trunc(centre - support + 0.5));
        const weights = Array.from({ length: Math.min(size, Math.trunc(centre + support + 0.5)) - first }, (_, x) =>
            kernel((first + x - centre + 0.5) / wide),
        );
        const sum = weights.reduce((all, weight) => all + weight, 0);
        return { first, weights: weights.map((weight) => Math.trunc((weight / sum) * PRECISION + (weight < 0 ? -0.5 : 0.5))) };
    });
}

/** @param {number} x */
function kernel(x) {
    const sinc = (/** @type {number} */ t) => (t === 0 ? 1 : Math.sin(Math.PI * t) / (Math.PI * t));
    return -LOBES <= x && x < LOBES ? sinc(x) * sinc(x / LOBES) : 0;
}

/** @param {Weights} weights @param {(place: number) => number} at */
function weighed({ first, weights }, at) {
    const sum = weights.reduce((all, weight, x) => all + weight * at(first + x), PRECISION / 2);
    return Math.min(255, Math.max(0, Math.floor(sum / PRECISION)));
}
