/* @NAME@.h: a @KIND@ as a circuit of logic gates, @ENDS@. C99, no other files.
 * @ABOUT@
 *
 * @SAMPLE_TITLE@: @SAMPLE_NAMES@.
 * @RESULT_TITLE@: @RESULT_NAMES@.
 */
#ifndef DIFFLOGIC_@UPPER@_H
#define DIFFLOGIC_@UPPER@_H

#include <stdint.h>

@WHERE READS_NUMBERS@
#define @UPPER@_@INPUTS_UPPER@ @DIMENSIONS@ /* numbers of @A_SAMPLE@ */
@END@
@WHERE DECIDES@
#define @UPPER@_@CHOICES_UPPER@ @CHOICES@
@END@
@WHERE REMEMBERS@
#define @UPPER@_MEMORY @MEMORY@ /* bits of memory: the last of these numbers, and the bits behind the @CHOICE@'s */
#define @UPPER@_SEEN (@UPPER@_@INPUTS_UPPER@ - @UPPER@_MEMORY) /* inputs that are observed */
@END@
#define @UPPER@_@RESULT_UPPER@_BITS @RESULT_BITS@
#define @UPPER@_@CODE_UPPER@ @INPUTS@
@WHERE READS_NUMBERS@
#define @UPPER@_WIDTH @WIDTH@ /* bits of a number in fixed point */
#define @UPPER@_FRACTION_BITS @FRACTION_BITS@ /* of these, bits behind the point */
@END@

@PARTS@/* The gates alone, for 64 @SAMPLE@s at once, one per bit: code[i] is 1 where @CODE_SAID@, @RESULT@[i] is @RESULT_SAID@.
 */
static inline void @NAME@_gates(const uint64_t code[@UPPER@_@CODE_UPPER@], uint64_t @RESULT@[@UPPER@_@RESULT_UPPER@_BITS])
{
    (void)code; /* a constant @RESULT@ reads nothing */
    @BODY@
}
@WHERE DECIDES@

/* The number of the @CHOICE@ at a code, each bit of it 0 or 1. */
static inline int @NAME@_decide(const uint64_t code[@UPPER@_@CODE_UPPER@])
{
    uint64_t @RESULT@[@UPPER@_@RESULT_UPPER@_BITS];
    int number = 0;
    @NAME@_gates(code, @RESULT@);
    for (int bit = 0; bit < @UPPER@_@RESULT_UPPER@_BITS; bit++)
        number |= (int)(@RESULT@[bit] & 1) << bit;
    return number;
}
@END@
@WHERE READS_NUMBERS@

/* Return the number of the @CHOICE@ for @A_SAMPLE@. NaN is below every threshold. */
static inline int @NAME@_@VERB@(const double @SAMPLE@[@UPPER@_@INPUTS_UPPER@])
{
    const uint64_t code[@UPPER@_@CODE_UPPER@] = {
        @ROWS@
    };
    return @NAME@_decide(code);
}

/* The same in fixed point: floor(x * 2^@FRACTION_BITS@) of each number x, which may be cut off at the ends of @WIDTH@ bits, two's
 * complement. Of this form and that in floating point: @AGREEMENT@. */
static inline int @NAME@_@VERB@_fixed(const int64_t @SAMPLE@[@UPPER@_@INPUTS_UPPER@])
{
    const uint64_t code[@UPPER@_@CODE_UPPER@] = {
        @FIXED_ROWS@
    };
    return @NAME@_decide(code);
}
@END@
@WHERE REMEMBERS@

/* Return the number of the @CHOICE@ for an observation, and update `memory`, which is 0 at the beginning of an
 * episode. */
static inline int @NAME@_step(uint32_t *memory, const double seen[@UPPER@_SEEN])
{
    double all[@UPPER@_@INPUTS_UPPER@];
    for (int d = 0; d < @UPPER@_@INPUTS_UPPER@; d++)
        all[d] = d < @UPPER@_SEEN ? seen[d] : (double)(*memory >> (d - @UPPER@_SEEN) & 1);
    const int number = @NAME@_@VERB@(all);
    *memory = (uint32_t)number >> (@UPPER@_@RESULT_UPPER@_BITS - @UPPER@_MEMORY);
    return number & ((1 << (@UPPER@_@RESULT_UPPER@_BITS - @UPPER@_MEMORY)) - 1);
}

/* The same in fixed point. */
static inline int @NAME@_step_fixed(uint32_t *memory, const int64_t seen[@UPPER@_SEEN])
{
    int64_t all[@UPPER@_@INPUTS_UPPER@];
    for (int d = 0; d < @UPPER@_@INPUTS_UPPER@; d++)
        all[d] = d < @UPPER@_SEEN ? seen[d] : (int64_t)(*memory >> (d - @UPPER@_SEEN) & 1) << @UPPER@_FRACTION_BITS;
    const int number = @NAME@_@VERB@_fixed(all);
    *memory = (uint32_t)number >> (@UPPER@_@RESULT_UPPER@_BITS - @UPPER@_MEMORY);
    return number & ((1 << (@UPPER@_@RESULT_UPPER@_BITS - @UPPER@_MEMORY)) - 1);
}
@END@

#endif
