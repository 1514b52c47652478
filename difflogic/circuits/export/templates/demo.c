/* Draws @NAME@ from a random start:
 *     cc -std=c99 -O2 @NAME@_demo.c -o @NAME@_demo && ./@NAME@_demo 16 32 20
 * Arguments: height, width, steps, seed. A character is the cell's first visible bits as a number: . is 0, then 1-9A-Za-z+/.
 */
#include "@NAME@.h"

#include <stdio.h>
#include <stdlib.h>

/* splitmix64 */
static uint64_t random_word(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

static unsigned long argument(int count, char **values, int index, unsigned long otherwise)
{
    return index < count ? strtoul(values[index], NULL, 10) : otherwise;
}

static void draw(const uint64_t *grid, size_t height, size_t width)
{
    static const char digits[] = ".123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz+/";
    for (size_t y = 0; y < height; y++) {
        for (size_t x = 0; x < width; x++) {
            unsigned value = 0;
            for (size_t c = 0; c < @UPPER@_VISIBLE && c < 6; c++)
                value |= (unsigned)@NAME@_get(grid, width, y, x, c) << c;
            putchar(digits[value]);
        }
        putchar('\n');
    }
}

int main(int count, char **values)
{
    const size_t height = argument(count, values, 1, 16), width = argument(count, values, 2, 32);
    const unsigned long steps = argument(count, values, 3, 20);
    uint64_t seed = argument(count, values, 4, 1);
    if (height < 1 || width < 1 || height > 65536 || width > 65536) {
        fprintf(stderr, "A grid has sides from 1 to 65536.\n");
        return 2;
    }
    const size_t words = @NAME@_words(width), size = height * @UPPER@_CHANNELS * words;
    uint64_t *now = calloc(size, sizeof *now), *then = calloc(size, sizeof *then);
    if (!now || !then) {
        fprintf(stderr, "Not enough memory.\n");
        free(now);
        free(then);
        return 1;
    }
    for (size_t i = 0; i < size; i++)
        now[i] = random_word(&seed) & (i % words + 1 < words ? ~UINT64_C(0) : ~UINT64_C(0) >> (64 * words - width));
    for (unsigned long step = 0; step < steps; step++) {
        @NAME@_step(now, then, height, width);
        uint64_t *swap = now;
        now = then;
        then = swap;
    }
    draw(now, height, width);
    free(now);
    free(then);
    return 0;
}
