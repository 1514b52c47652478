/* @NAME@.h: a cellular automaton whose rule is a circuit of logic gates. C99, no other files.
 * @ABOUT@
 *
 * A grid is rows of bit planes, uint64_t [height][@UPPER@_CHANNELS][@NAME@_words(width)]: bit i of word j is the cell
 * in column 64*j + i. Bits beyond the last column are 0.
 */
#ifndef DIFFLOGIC_@UPPER@_H
#define DIFFLOGIC_@UPPER@_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define @UPPER@_CHANNELS @CHANNELS@ /* bits of a cell */
#define @UPPER@_VISIBLE @VISIBLE@ /* the first so many channels are the picture */
#define @UPPER@_INPUTS @INPUTS@
#define @UPPER@_PERIODIC @PERIODIC@ /* 1: the grid wraps around; 0: outside it every bit is 0 */

/* Words that are computed at a time: 1, 2, 4 or 8. Fewer of many channels: a step takes at most 128 KB of stack. */
#ifndef @UPPER@_LANES
#if !defined __GNUC__
#define @UPPER@_LANES 1
#elif defined __AVX512F__ && @UPPER@_CHANNELS <= 546
#define @UPPER@_LANES 8
#elif defined __AVX2__ && @UPPER@_CHANNELS <= 910
#define @UPPER@_LANES 4
#else
#define @UPPER@_LANES 2
#endif
#endif
#if @UPPER@_LANES == 1
typedef uint64_t @NAME@_lanes;
#else
typedef uint64_t @NAME@_lanes __attribute__((vector_size(8 * @UPPER@_LANES)));
#endif
#define @UPPER@_STRIP_ROWS @STRIP_ROWS@ /* rows of a strip, which is what is computed of a column before the next one */

/* The new state of 64 cells, one per bit: patch[9*channel + 3*dy + dx], dy and dx from 0 (above, left) to 2. */
static inline void @NAME@_cell(const uint64_t patch[@UPPER@_INPUTS], uint64_t result[@UPPER@_CHANNELS])
{
    (void)patch; /* a constant rule reads nothing */
    @BODY@
}

/* Words of a row of one channel. */
static inline size_t @NAME@_words(size_t width)
{
    return (width + 63) / 64;
}

/* Words i - 1 to i + LANES of a row of a channel, with the cells at its ends; NULL is a row outside the grid. */
static inline void @NAME@_copy(const uint64_t *row, size_t width, size_t i, uint64_t *strip)
{
    const size_t words = @NAME@_words(width), end = i + @UPPER@_LANES;
    if (!row) {
        memset(strip, 0, (@UPPER@_LANES + 2) * sizeof *strip);
        return;
    }
    memcpy(strip + 1, row + i, @UPPER@_LANES * sizeof *row);
    strip[0] = i > 0 ? row[i - 1] : 0;
    strip[@UPPER@_LANES + 1] = end < words ? row[end] : 0;
    if (@UPPER@_PERIODIC && i == 0) /* the last cell is to the left of the first */
        strip[0] = row[words - 1] >> (width - 1) % 64 << 63;
    if (@UPPER@_PERIODIC && end == words) /* and the first to the right of it */
        strip[@UPPER@_LANES + (width % 64 == 0)] |= (row[0] & 1) << width % 64;
}

/* A row of fewer words, one bit higher: the bits at its ends are the cells beside it, so that it needs no word beside it.
 * That it has fewer words than lanes is said in its loops: compilers then unroll them. */
static inline void @NAME@_fold(const uint64_t *row, size_t width, uint64_t *lanes, size_t count)
{
    const size_t words = @NAME@_words(width);
    lanes[0] = row[0] << 1 | (@UPPER@_PERIODIC ? row[words - 1] >> (width - 1) % 64 : 0);
    for (size_t k = 1; k < @UPPER@_LANES && k < words; k++)
        lanes[k] = row[k] << 1 | row[k - 1] >> 63;
    if (count > words)
        lanes[words] = row[words - 1] >> 63;
    if (@UPPER@_PERIODIC)
        lanes[count - 1] |= (row[0] & 1) << (width + 1) % 64;
}

/* The cells of a row of a strip, or those to their left (dx -1) or right (1). */
static inline void @NAME@_read(const uint64_t *strip, size_t row, size_t channel, int dx, @NAME@_lanes *cells)
{
    const uint64_t *at = strip + (row * @UPPER@_CHANNELS + channel) * (@UPPER@_LANES + 2) + 1;
    @NAME@_lanes beside;
    memcpy(cells, at, sizeof *cells);
    memcpy(&beside, at + dx, sizeof beside);
    if (dx)
        *cells = dx < 0 ? *cells << 1 | beside >> 63 : *cells >> 1 | beside << 63;
}

/* The new state of the rows of a strip. A row takes over what it has in common with the one above. It is written when all
 * of its neighbourhood is read: `to` may be the strip. */
static inline void @NAME@_strip(const uint64_t *strip, uint64_t *to, size_t rows, size_t words)
{
    @BEFORE@
    (void)strip; /* a constant rule reads nothing */
    for (size_t y = 0; y < rows; y++) {
        @ROW@
    }
}

/* A step where a row does not fill the lanes: rows far apart lie side by side in them, one of each band of the grid. */
static inline void @NAME@_narrow_step(const uint64_t *from, uint64_t *to, size_t height, size_t width)
{
    const size_t words = @NAME@_words(width), pitch = @UPPER@_CHANNELS * words, step = @UPPER@_LANES + 2;
    const size_t count = (width + 65) / 64, bands = @UPPER@_LANES / count, depth = (height + bands - 1) / bands;
    const uint64_t last = ~UINT64_C(0) >> (64 * words - width);
    uint64_t strip[(@UPPER@_STRIP_ROWS + 2) * @UPPER@_CHANNELS * (@UPPER@_LANES + 2)];
    for (size_t top = 0; top < depth; top += @UPPER@_STRIP_ROWS) {
        const size_t rows = depth - top < @UPPER@_STRIP_ROWS ? depth - top : @UPPER@_STRIP_ROWS;
        memset(strip, 0, (rows + 2) * @UPPER@_CHANNELS * step * sizeof *strip); /* not every lane has a row */
        for (size_t band = 0; band < bands; band++)
            for (size_t y = 0; y < rows + 2; y++) {
                const size_t at = band * depth + top + y;
                const uint64_t *row = from + (at + height - 1) % height * pitch;
                uint64_t *place = strip + y * @UPPER@_CHANNELS * step + 1 + band * count;
                if (@UPPER@_PERIODIC || (at > 0 && at <= height))
                    for (size_t c = 0; c < @UPPER@_CHANNELS; c++)
                        @NAME@_fold(row + c * words, width, place + c * step, count);
            }
        @NAME@_strip(strip, strip + 1, rows, step);
        for (size_t band = 0; band < bands; band++)
            for (size_t y = 0; y < rows && band * depth + top + y < height; y++) {
                uint64_t *row = to + (band * depth + top + y) * pitch;
                const uint64_t *place = strip + y * @UPPER@_CHANNELS * step + 1 + band * count;
                for (size_t c = 0; c < @UPPER@_CHANNELS; c++, row += words, place += step) {
                    for (size_t k = 0; k < @UPPER@_LANES && k < words; k++)
                        row[k] = place[k] >> 1 | place[k + 1] << 63;
                    row[words - 1] &= last;
                }
            }
    }
}

/* A step where a row fills the lanes at least once. */
static inline void @NAME@_wide_step(const uint64_t *from, uint64_t *to, size_t height, size_t width)
{
    const size_t words = @NAME@_words(width), pitch = @UPPER@_CHANNELS * words;
    const uint64_t last = ~UINT64_C(0) >> (64 * words - width);
    uint64_t strip[(@UPPER@_STRIP_ROWS + 2) * @UPPER@_CHANNELS * (@UPPER@_LANES + 2)];
    for (size_t top = 0; top < height; top += @UPPER@_STRIP_ROWS) {
        const size_t rows = height - top < @UPPER@_STRIP_ROWS ? height - top : @UPPER@_STRIP_ROWS;
        for (size_t next = 0; next < words; next += @UPPER@_LANES) {
            /* The last lanes may begin within those before. */
            const size_t i = next + @UPPER@_LANES < words ? next : words - @UPPER@_LANES;
            for (size_t y = 0; y < rows + 2; y++) {
                const int inside = @UPPER@_PERIODIC || (top + y > 0 && top + y <= height);
                const uint64_t *row = from + (top + y + height - 1) % height * pitch;
                for (size_t c = 0; c < @UPPER@_CHANNELS; c++)
                    @NAME@_copy(inside ? row + c * words : NULL, width, i,
                                strip + (y * @UPPER@_CHANNELS + c) * (@UPPER@_LANES + 2));
            }
            @NAME@_strip(strip, to + top * pitch + i, rows, words);
        }
        for (size_t row = 0; row < rows * @UPPER@_CHANNELS; row++)
            to[top * pitch + row * words + words - 1] &= last;
    }
}

/* One step: every cell of `to` from its neighbourhood in `from`. The two may not overlap; no side may be 0. Threads may do
 * steps of different grids at a time. */
static inline void @NAME@_step(const uint64_t *from, uint64_t *to, size_t height, size_t width)
{
    if (@NAME@_words(width) < @UPPER@_LANES)
        @NAME@_narrow_step(from, to, height, width);
    else
        @NAME@_wide_step(from, to, height, width);
}

/* A bit of a cell. */
static inline int @NAME@_get(const uint64_t *grid, size_t width, size_t y, size_t x, size_t channel)
{
    return (int)(grid[(y * @UPPER@_CHANNELS + channel) * @NAME@_words(width) + x / 64] >> x % 64 & 1);
}

/* Set it to 0 or 1. */
static inline void @NAME@_set(uint64_t *grid, size_t width, size_t y, size_t x, size_t channel, int value)
{
    uint64_t *word = grid + (y * @UPPER@_CHANNELS + channel) * @NAME@_words(width) + x / 64;
    *word = (*word & ~(UINT64_C(1) << x % 64)) | (uint64_t)(value != 0) << x % 64;
}

#endif
