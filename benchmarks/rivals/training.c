/* Train step in optimized C, for comparison; `in_c.py` compiles and calls it.

   Sizes are constants: CHANNELS, HEIGHT, WIDTH, BATCH, STEPS, LOSS_CHANNELS, LEVELS, GATES, INSTANCES. Cells are the last
   axis, in tiles of some rows of the grid, which are distributed over threads. The forward pass stores only the states:
   the backward pass recomputes the nodes of a tile, which fit into the cache. A state has a border of zeros, so that a
   neighbour is a row of floats at another offset. The compiler vectorises all loops over cells. */
#include <math.h>
#include <omp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define PATCH (9 * CHANNELS)
#define NODES (PATCH + INSTANCES)
#define ROWS (WIDTH < 32 ? 32 / WIDTH : 1)
#define TILE (ROWS * WIDTH)
#define TILES (BATCH * HEIGHT / ROWS)
#define ACROSS (WIDTH + 2)
#define PLANE (BATCH * (HEIGHT + 2) * ACROSS)
/* The first cell of row `y`, counted over the samples, in a padded plane. */
#define BEGIN(y) (((y) / HEIGHT * (HEIGHT + 2) + (y) % HEIGHT + 1) * ACROSS + 1)
/* From a cell to its neighbour f. */
#define OFFSET(f) (((f) / 3 - 1) * ACROSS + (f) % 3 - 1)

struct level { int32_t first_instance, count, first_gate, replicas; };

struct training {
    struct level levels[LEVELS];
    int32_t wires[INSTANCES][2];
    float table[16][4]; /* the coefficients of the sixteen gates */
    float logits[GATES][16], mu[GATES][16], nu[GATES][16];
    float target[LOSS_CHANNELS][BATCH * HEIGHT * WIDTH];
    float lr, weight_decay, beta1, beta2, epsilon, clip;
    int32_t step;
    uint64_t seed;
    float probs[GATES][16], coefficients[GATES][4];
    float states[STEPS + 1][CHANNELS][PLANE];
    float d_patches[2][PATCH][PLANE];
    uint8_t bits[2][CHANNELS][PLANE], forms[GATES][4];
};

struct scratch {
    float nodes[NODES][TILE], adjoints[NODES][TILE], moments[GATES][4];
    uint8_t bits[NODES][TILE];
    double loss;
    long wrong;
};

static void compute(const struct training *t, int tile, float (*state)[PLANE], float (*restrict nodes)[TILE]) {
    for (int c = 0; c < CHANNELS; c++)
        for (int f = 0; f < 9; f++)
            for (int row = 0; row < ROWS; row++)
                memcpy(nodes[9 * c + f] + row * WIDTH, state[c] + BEGIN(tile * ROWS + row) + OFFSET(f), 4 * WIDTH);
    for (int l = 0; l < LEVELS; l++) {
        struct level level = t->levels[l];
        for (int k = 0; k < level.count; k++) {
            int instance = level.first_instance + k;
            const float *at = t->coefficients[level.first_gate + k / level.replicas];
            float c0 = at[0], ca = at[1], cb = at[2], cab = at[3];
            const float *a = nodes[t->wires[instance][0]], *b = nodes[t->wires[instance][1]];
            float *restrict out = nodes[PATCH + instance];
            for (int i = 0; i < TILE; i++) out[i] = (cab * a[i] + cb) * b[i] + (ca * a[i] + c0);
        }
    }
}

static void forward(struct training *t, int at, int tile, struct scratch *s) {
    compute(t, tile, t->states[at], s->nodes);
    for (int c = 0; c < CHANNELS; c++)
        for (int row = 0; row < ROWS; row++)
            memcpy(t->states[at + 1][c] + BEGIN(tile * ROWS + row), s->nodes[NODES - CHANNELS + c] + row * WIDTH,
                   4 * WIDTH);
}

static void backward(struct training *t, int at, int tile, struct scratch *s) {
    compute(t, tile, t->states[at], s->nodes);
    memset(s->adjoints, 0, sizeof s->adjoints);
    float (*d_state)[TILE] = s->adjoints + NODES - CHANNELS;
    for (int row = 0; row < ROWS; row++) {
        int begin = BEGIN(tile * ROWS + row);
        if (at == STEPS - 1) {
            for (int c = 0; c < LOSS_CHANNELS; c++)
                for (int x = 0; x < WIDTH; x++) {
                    float off = t->states[STEPS][c][begin + x] - t->target[c][tile * TILE + row * WIDTH + x];
                    s->loss += off * off;
                    d_state[c][row * WIDTH + x] = 2 * off;
                }
            continue;
        }
        for (int c = 0; c < CHANNELS; c++)
            for (int f = 0; f < 9; f++) {
                const float *from = t->d_patches[(at + 1) % 2][9 * c + f] + begin - OFFSET(f);
                for (int x = 0; x < WIDTH; x++) d_state[c][row * WIDTH + x] += from[x];
            }
    }
    for (int l = LEVELS - 1; l >= 0; l--) {
        struct level level = t->levels[l];
        for (int gate = 0; gate < level.count / level.replicas; gate++) {
            const float *of = t->coefficients[level.first_gate + gate];
            float ca = of[1], cb = of[2], cab = of[3];
            float sum_d = 0, sum_da = 0, sum_db = 0, sum_dab = 0;
            for (int replica = 0; replica < level.replicas; replica++) {
                int instance = level.first_instance + gate * level.replicas + replica;
                int in_a = t->wires[instance][0], in_b = t->wires[instance][1];
                const float *a = s->nodes[in_a], *b = s->nodes[in_b], *d = s->adjoints[PATCH + instance];
                float *restrict to_a = s->adjoints[in_a];
                for (int i = 0; i < TILE; i++) {
                    sum_d += d[i], sum_da += d[i] * a[i], sum_db += d[i] * b[i], sum_dab += d[i] * a[i] * b[i];
                    to_a[i] += d[i] * (ca + cab * b[i]);
                }
                float *restrict to_b = s->adjoints[in_b]; /* may be the same row as `to_a` */
                for (int i = 0; i < TILE; i++) to_b[i] += d[i] * (cb + cab * a[i]);
            }
            float *moments = s->moments[level.first_gate + gate];
            moments[0] += sum_d, moments[1] += sum_da, moments[2] += sum_db, moments[3] += sum_dab;
        }
    }
    for (int node = 0; node < PATCH; node++)
        for (int row = 0; row < ROWS; row++)
            memcpy(t->d_patches[at % 2][node] + BEGIN(tile * ROWS + row), s->adjoints[node] + row * WIDTH, 4 * WIDTH);
}

/* The samples are the bits of a byte. */
static void hard(struct training *t, int at, int tile, struct scratch *s) {
    for (int c = 0; c < CHANNELS; c++)
        for (int f = 0; f < 9; f++)
            for (int row = 0; row < ROWS; row++)
                memcpy(s->bits[9 * c + f] + row * WIDTH, t->bits[at % 2][c] + BEGIN(tile * ROWS + row) + OFFSET(f), WIDTH);
    for (int l = 0; l < LEVELS; l++)
        for (int k = 0; k < t->levels[l].count; k++) {
            int instance = t->levels[l].first_instance + k;
            const uint8_t *form = t->forms[t->levels[l].first_gate + k / t->levels[l].replicas];
            uint8_t c0 = form[0], ca = form[1], cb = form[2], cab = form[3];
            const uint8_t *a = s->bits[t->wires[instance][0]], *b = s->bits[t->wires[instance][1]];
            uint8_t *restrict out = s->bits[PATCH + instance];
            for (int i = 0; i < TILE; i++) out[i] = c0 ^ (ca & a[i]) ^ (((cab & a[i]) ^ cb) & b[i]);
        }
    for (int c = 0; c < CHANNELS; c++)
        for (int row = 0; row < ROWS; row++)
            memcpy(t->bits[(at + 1) % 2][c] + BEGIN(tile * ROWS + row), s->bits[NODES - CHANNELS + c] + row * WIDTH, WIDTH);
}

static void prepare(struct training *t, int gate) {
    float most = t->logits[gate][0], sum = 0;
    int best = 0;
    for (int k = 1; k < 16; k++)
        if (t->logits[gate][k] > most) most = t->logits[gate][k], best = k;
    for (int k = 0; k < 16; k++) sum += t->probs[gate][k] = expf(t->logits[gate][k] - most);
    for (int k = 0; k < 16; k++) t->probs[gate][k] /= sum;
    for (int j = 0; j < 4; j++) {
        float total = 0;
        for (int k = 0; k < 16; k++) total += t->probs[gate][k] * t->table[k][j];
        t->coefficients[gate][j] = total;
        t->forms[gate][j] = (int)t->table[best][j] & 1 ? 255 : 0;
    }
}

static void update(struct training *t, int gate, const float *moments) {
    float d[16], mean = 0;
    for (int k = 0; k < 16; k++) {
        const float *form = t->table[k];
        d[k] = form[0] * moments[0] + form[1] * moments[1] + form[2] * moments[2] + form[3] * moments[3];
        mean += d[k] * t->probs[gate][k];
    }
    float scale1 = 1 - powf(t->beta1, t->step), scale2 = 1 - powf(t->beta2, t->step);
    for (int k = 0; k < 16; k++) {
        float g = fminf(fmaxf(t->probs[gate][k] * (d[k] - mean), -t->clip), t->clip), *p = &t->logits[gate][k];
        float m = t->mu[gate][k] = t->beta1 * t->mu[gate][k] + (1 - t->beta1) * g;
        float v = t->nu[gate][k] = t->beta2 * t->nu[gate][k] + (1 - t->beta2) * g * g;
        *p -= t->lr * (m / scale1 / (sqrtf(v / scale2) + t->epsilon) + t->weight_decay * *p);
    }
}

/* Fill `states[0]` with random initial states. */
static void draw(struct training *t) {
    for (int c = 0; c < CHANNELS; c++)
        for (int y = 0; y < BATCH * HEIGHT; y++)
            for (int x = 0; x < WIDTH; x++) {
                t->seed ^= t->seed << 13, t->seed ^= t->seed >> 7, t->seed ^= t->seed << 17;
                t->states[0][c][BEGIN(y) + x] = t->seed & 1;
            }
}

static long wrong_bits(const struct training *t) {
    long wrong = 0;
    for (int c = 0; c < LOSS_CHANNELS; c++)
        for (int y = 0; y < BATCH * HEIGHT; y++)
            for (int x = 0; x < WIDTH; x++) {
                int bit = t->bits[STEPS % 2][c][BEGIN(y % HEIGHT) + x] >> y / HEIGHT & 1;
                wrong += bit != (t->target[c][y * WIDTH + x] > .5f);
            }
    return wrong;
}

/* Run `count` train steps; `losses` are the soft and the hard loss before the last step. */
void train(struct training *t, struct scratch *all, int count, int drawn, double *losses) {
#pragma omp parallel
    for (int epoch = 0; epoch < count; epoch++) {
        struct scratch *s = all + omp_get_thread_num();
        s->loss = 0;
        memset(s->moments, 0, sizeof s->moments);
#pragma omp single
        {
            if (drawn) draw(t);
            memset(t->bits, 0, sizeof t->bits);
            for (int c = 0; c < CHANNELS; c++)
                for (int y = 0; y < BATCH * HEIGHT; y++)
                    for (int x = 0; x < WIDTH; x++)
                        t->bits[0][c][BEGIN(y % HEIGHT) + x] |= (int)t->states[0][c][BEGIN(y) + x] << y / HEIGHT;
        }
#pragma omp for
        for (int gate = 0; gate < GATES; gate++) prepare(t, gate);
        for (int at = 0; at < STEPS; at++) {
#pragma omp for
            for (int tile = 0; tile < TILES; tile++) forward(t, at, tile, s);
        }
        for (int at = STEPS - 1; at >= 0; at--) {
#pragma omp for
            for (int tile = 0; tile < TILES; tile++) backward(t, at, tile, s);
        }
        for (int at = 0; at < STEPS; at++) {
#pragma omp for
            for (int tile = 0; tile < HEIGHT / ROWS; tile++) hard(t, at, tile, s);
        }
#pragma omp single
        {
            t->step++;
            losses[0] = 0, losses[1] = wrong_bits(t);
            for (int k = 0; k < omp_get_num_threads(); k++) losses[0] += all[k].loss;
        }
#pragma omp for
        for (int gate = 0; gate < GATES; gate++) {
            float moments[4] = {0};
            for (int k = 0; k < omp_get_num_threads(); k++)
                for (int j = 0; j < 4; j++) moments[j] += all[k].moments[gate][j];
            update(t, gate, moments);
        }
    }
}

long training_bytes(void) { return sizeof(struct training); }
long scratch_bytes(void) { return sizeof(struct scratch); }
