/* Hand-written Game of Life, for comparison: 64 cells per word, on a torus with a width that is a multiple of 64.

   The sum of three rows is computed once per column, then added to the sums of both neighbouring columns: a total of 3
   lives, 4 stays. The compiler vectorises both loops. Threads compute bands of rows and synchronise after every step. */
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>

typedef uint64_t word;

struct work {
    word *states[2];
    long height, words, steps, first, last;
    pthread_barrier_t *met;
};

static void step_row(const word *restrict up, const word *restrict mid, const word *restrict down,
                     word *restrict out, word *restrict one, word *restrict two, long words) {
    for (long i = 0; i < words; i++) {
        word half = up[i] ^ mid[i];
        one[i] = half ^ down[i];
        two[i] = (up[i] & mid[i]) | (half & down[i]);
    }
    one[-1] = one[words - 1], one[words] = one[0];
    two[-1] = two[words - 1], two[words] = two[0];
    for (long i = 0; i < words; i++) {
        word one_w = one[i] << 1 | one[i - 1] >> 63, one_e = one[i] >> 1 | one[i + 1] << 63;
        word two_w = two[i] << 1 | two[i - 1] >> 63, two_e = two[i] >> 1 | two[i + 1] << 63;
        word half = one_w ^ one[i], ones = half ^ one_e, carry = (one_w & one[i]) | (half & one_e);
        word half2 = two_w ^ two[i], odd = half2 ^ two_e, fours = (two_w & two[i]) | (half2 & two_e);
        word twos = odd ^ carry, more = odd & carry;
        word three = ones & twos & ~(fours | more), four = ~(ones | twos) & (fours ^ more);
        out[i] = three | (four & mid[i]);
    }
}

static void *run(void *argument) {
    struct work *w = argument;
    word *rows = aligned_alloc(64, 2 * (w->words + 16) * sizeof(word));
    word *one = rows + 8, *two = one + w->words + 16;
    for (long step = 0; step < w->steps; step++) {
        const word *from = w->states[step % 2];
        word *to = w->states[(step + 1) % 2];
        for (long y = w->first; y < w->last; y++) {
            const word *up = from + (y ? y - 1 : w->height - 1) * w->words;
            const word *down = from + (y + 1 < w->height ? y + 1 : 0) * w->words;
            step_row(up, from + y * w->words, down, to + y * w->words, one, two, w->words);
        }
        pthread_barrier_wait(w->met);
    }
    free(rows);
    return NULL;
}

/* Steps from `even`; the result is in `even` after an even number, else in `odd`. */
void life(word *even, word *odd, long height, long words, long steps, long threads) {
    pthread_barrier_t met;
    pthread_t ids[threads];
    struct work works[threads];
    pthread_barrier_init(&met, NULL, threads);
    for (long t = 0; t < threads; t++) {
        works[t] = (struct work){{even, odd}, height, words, steps, height * t / threads, height * (t + 1) / threads, &met};
        if (t) pthread_create(&ids[t], NULL, run, &works[t]);
    }
    run(&works[0]);
    for (long t = 1; t < threads; t++) pthread_join(ids[t], NULL);
    pthread_barrier_destroy(&met);
}
