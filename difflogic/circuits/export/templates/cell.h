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

#define @UPPER@_CHANNELS @CHANNELS@ /* bits of a cell */
#define @UPPER@_VISIBLE @VISIBLE@ /* the first so many channels are the picture */
#define @UPPER@_INPUTS @INPUTS@
#define @UPPER@_PERIODIC @PERIODIC@ /* 1: the grid wraps around; 0: outside it every bit is 0 */

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

/* The left neighbours of the 64 cells of a word. */
static inline uint64_t @NAME@_left(const uint64_t *row, size_t width, size_t word)
{
    const size_t last = @NAME@_words(width) - 1;
    uint64_t first = 0;
    if (word > 0)
        first = row[word - 1] >> 63;
    else if (@UPPER@_PERIODIC)
        first = row[last] >> ((width - 1) % 64) & 1;
    return row[word] << 1 | first;
}

/* Their right neighbours. */
static inline uint64_t @NAME@_right(const uint64_t *row, size_t width, size_t word)
{
    const size_t last = @NAME@_words(width) - 1;
    const uint64_t shifted = row[word] >> 1;
    if (word < last)
        return shifted | row[word + 1] << 63;
    if (@UPPER@_PERIODIC)
        return shifted | (row[0] & 1) << ((width - 1) % 64);
    return shifted;
}

/* The words of a row of one channel, and the cells beside them; NULL is a row outside the grid. */
static inline void @NAME@_load(const uint64_t *row, size_t width, size_t word, uint64_t three[3])
{
    three[0] = row ? @NAME@_left(row, width, word) : 0;
    three[1] = row ? row[word] : 0;
    three[2] = row ? @NAME@_right(row, width, word) : 0;
}

/* A word of row y, at the border of the grid or anywhere. */
static inline void @NAME@_word(const uint64_t *from, uint64_t *to, size_t height, size_t width, size_t y, size_t word)
{
    const size_t words = @NAME@_words(width);
    const uint64_t last = ~UINT64_C(0) >> (64 * words - width);
    const size_t rows[3] = {y > 0 ? y - 1 : height - 1, y, y + 1 < height ? y + 1 : 0};
    const int inside[3] = {@UPPER@_PERIODIC || y > 0, 1, @UPPER@_PERIODIC || y + 1 < height};
    uint64_t patch[@UPPER@_INPUTS], result[@UPPER@_CHANNELS];
    for (size_t c = 0; c < @UPPER@_CHANNELS; c++)
        for (size_t dy = 0; dy < 3; dy++) {
            const uint64_t *row = from + (rows[dy] * @UPPER@_CHANNELS + c) * words;
            @NAME@_load(inside[dy] ? row : NULL, width, word, patch + 9 * c + 3 * dy);
        }
    @NAME@_cell(patch, result);
    for (size_t c = 0; c < @UPPER@_CHANNELS; c++)
        to[(y * @UPPER@_CHANNELS + c) * words + word] = word + 1 < words ? result[c] : result[c] & last;
}

/* The words of a row that have one on either side: compilers take several at a time. */
static inline void @NAME@_inner(const uint64_t *restrict above, const uint64_t *restrict row,
                                const uint64_t *restrict below, uint64_t *restrict to, size_t words)
{
    (void)above, (void)row, (void)below; /* a rule may read fewer */
    for (size_t i = 1; i + 1 < words; i++) {
        @INNER@
    }
}

/* One step: every cell of `to` from its neighbourhood in `from`. The two may not overlap; no side may be 0. */
static inline void @NAME@_step(const uint64_t *from, uint64_t *to, size_t height, size_t width)
{
    const size_t words = @NAME@_words(width), pitch = @UPPER@_CHANNELS * words;
    for (size_t y = 0; y < height; y++) {
        const int border = !@UPPER@_PERIODIC && (y == 0 || y + 1 == height);
        const size_t step = border || words < 3 ? 1 : words - 1;
        for (size_t word = 0; word < words; word += step)
            @NAME@_word(from, to, height, width, y, word);
        if (!border)
            @NAME@_inner(from + (y > 0 ? y - 1 : height - 1) * pitch, from + y * pitch,
                         from + (y + 1 < height ? y + 1 : 0) * pitch, to + y * pitch, words);
    }
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
