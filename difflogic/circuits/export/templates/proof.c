/* Runs @NAME@.h on what it is given: without arguments neighbourhoods, 64 at a time, each of their words in turn; with
 * height, width and steps a grid. Words as they lie in memory.
 */
#include "@NAME@.h"

#include <stdio.h>
#include <stdlib.h>

static int grid(size_t height, size_t width, unsigned long steps)
{
    const size_t size = height * @UPPER@_CHANNELS * @NAME@_words(width);
    uint64_t *now = malloc(size * sizeof *now), *then = malloc(size * sizeof *then);
    int failed = !now || !then || fread(now, sizeof *now, size, stdin) != size;
    for (unsigned long step = 0; !failed && step < steps; step++) {
        @NAME@_step(now, then, height, width);
        uint64_t *swap = now;
        now = then;
        then = swap;
    }
    failed = failed || fwrite(now, sizeof *now, size, stdout) != size;
    free(now);
    free(then);
    return failed;
}

int main(int count, char **values)
{
    if (count == 4)
        return grid(strtoul(values[1], NULL, 10), strtoul(values[2], NULL, 10), strtoul(values[3], NULL, 10));
    uint64_t patch[@UPPER@_INPUTS], result[@UPPER@_CHANNELS];
    while (fread(patch, sizeof *patch, @UPPER@_INPUTS, stdin) == @UPPER@_INPUTS) {
        @NAME@_cell(patch, result);
        if (fwrite(result, sizeof *result, @UPPER@_CHANNELS, stdout) != @UPPER@_CHANNELS)
            return 1;
    }
    return 0;
}
