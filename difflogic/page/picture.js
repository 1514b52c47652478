// A picture file as cells of eight colours: scaled down as Pillow does it for the command, to one of 255 levels, for its
// versions round in different orders; and put into the middle of the grid. See difflogic/config/picture_file.py and
// `_centred` of difflogic/config/customise.py.

const MAX_PIXELS = 4096 * 4096; // as for the command
const FORMATS = "PNG, GIF, JPEG, BMP or WEBP";
const HALF = 127.5; // a bit is 1 above it
const LOBES = 3; // of Lanczos
const GAP = 2; // Pillow averages whole blocks of pixels first, as long as this factor is left for Lanczos
const PRECISION = 2 ** 22; // weights are whole numbers of it

/** @typedef {{ width: number, height: number, data: Uint8Array | Uint8ClampedArray }} Pixels  RGBA, four bytes a pixel */

/**
 * The cells of a picture file, row by row: 1 red, 2 green and 4 blue are added.
 * @param {File} file
 * @param {number} width of the grid
 * @param {number} height
 * @returns {Promise<Uint8Array>}
 * @throws {Error} whose message is a sentence for the visitor
 */
export async function cellsOfFile(file, width, height) {
    const name = `\u2068${file.name}\u2069`; // a name from right to left keeps its place in the sentence
    if (file.type === "image/svg+xml") throw new Error(`${name} describes shapes and no pixels: save it as ${FORMATS}.`);
    const bitmap = await createImageBitmap(file, { premultiplyAlpha: "none", colorSpaceConversion: "none" }).catch(() => {
        throw new Error(`${name} is not a picture that can be read: expected ${FORMATS}, undamaged.`);
    });
    const sides = `${bitmap.width}x${bitmap.height}`;
    if (bitmap.width * bitmap.height > MAX_PIXELS) {
        bitmap.close();
        throw new Error(`${name} is ${sides} pixels, more than ${MAX_PIXELS.toLocaleString("en")}: scale it down first.`);
    }
    const cells = centred(fitted(pixelsOf(bitmap), width, height), width, height);
    if (!cells.some(Boolean)) throw new Error(`Every pixel of ${name} is transparent or too dark to count: expected some that are on.`);
    return cells;
}

/** @param {ImageBitmap} bitmap */
function pixelsOf(bitmap) {
    const { width, height } = bitmap;
    const context = /** @type {OffscreenCanvasRenderingContext2D} */ (new OffscreenCanvas(width, height).getContext("2d"));
    context.drawImage(bitmap, 0, 0);
    bitmap.close();
    return { width, height, data: context.getImageData(0, 0, width, height).data };
}

// Into the middle; an odd cell is left below and at the right.
/** @param {Pixels} pixels @param {number} width @param {number} height */
function centred({ data, ...inner }, width, height) {
    const cells = new Uint8Array(width * height),
        left = (width - inner.width) >> 1,
        above = (height - inner.height) >> 1;
    for (let y = 0; y < inner.height; y++)
        for (let x = 0; x < inner.width; x++) {
            const [red, green, blue, opacity] = data.subarray(4 * (y * inner.width + x));
            const on = [red, green, blue].map((value) => Number((value * opacity) / 255 > HALF));
            cells[(y + above) * width + x + left] = on[0] | (on[1] << 1) | (on[2] << 2);
        }
    return cells;
}

// `Image.thumbnail` of Pillow: in its own proportions, never larger.
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

// Colours times opacity, and back, for what is transparent has no colour to give.
/** @param {Pixels} pixels */
function multiplied({ width, height, data }) {
    const made = Uint8Array.from(data, (value, i) => {
        const product = value * data[i | 3] + 128;
        return i % 4 === 3 ? value : (product + (product >> 8)) >> 8;
    });
    return { width, height, data: made };
}

/** @param {Pixels} pixels */
function divided({ width, height, data }) {
    const made = Uint8Array.from(data, (value, i) => {
        const opacity = data[i | 3];
        return i % 4 === 3 || opacity === 0 ? value : Math.min(255, Math.floor((255 * value) / opacity));
    });
    return { width, height, data: made };
}

/** @param {Pixels} pixels @param {number} width @param {number} height */
function resized(pixels, width, height) {
    const across = Math.floor(pixels.width / width / GAP) || 1,
        down = Math.floor(pixels.height / height / GAP) || 1;
    const { data, ...reduced } = across > 1 || down > 1 ? averaged(pixels, across, down) : pixels;
    const columns = lanczos(reduced.width, pixels.width / across, width),
        rows = lanczos(reduced.height, pixels.height / down, height);
    const narrow = new Uint8Array(4 * width * reduced.height),
        made = new Uint8Array(4 * width * height);
    for (let y = 0; y < reduced.height; y++)
        for (let i = 0; i < 4 * width; i++)
            narrow[4 * width * y + i] = weighed(columns[i >> 2], (x) => data[4 * (y * reduced.width + x) + (i & 3)]);
    for (let y = 0; y < height; y++)
        for (let i = 0; i < 4 * width; i++) made[4 * width * y + i] = weighed(rows[y], (v) => narrow[4 * width * v + i]);
    return { width, height, data: made };
}

// Means of blocks; those at the right and below may be smaller.
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

// Of each new pixel the old ones that it is made of.
/** @param {number} size how many there are @param {number} length how much of them is seen @param {number} count of new ones @returns {Weights[]} */
function lanczos(size, length, count) {
    const scale = length / count,
        wide = Math.max(scale, 1),
        support = LOBES * wide;
    return Array.from({ length: count }, (_, i) => {
        const centre = (i + 0.5) * scale,
            first = Math.max(0, Math.trunc(centre - support + 0.5));
        const weights = Array.from({ length: Math.min(size, Math.trunc(centre + support + 0.5)) - first }, (_, x) =>
            bell((first + x - centre + 0.5) / wide),
        );
        const sum = weights.reduce((all, weight) => all + weight, 0);
        return { first, weights: weights.map((weight) => Math.trunc((weight / sum) * PRECISION + (weight < 0 ? -0.5 : 0.5))) };
    });
}

/** @param {number} x */
function bell(x) {
    const sinc = (/** @type {number} */ t) => (t === 0 ? 1 : Math.sin(Math.PI * t) / (Math.PI * t));
    return -LOBES <= x && x < LOBES ? sinc(x) * sinc(x / LOBES) : 0;
}

/** @param {Weights} weights @param {(place: number) => number} at */
function weighed({ first, weights }, at) {
    const sum = weights.reduce((all, weight, x) => all + weight * at(first + x), PRECISION / 2);
    return Math.min(255, Math.max(0, Math.floor(sum / PRECISION)));
}
