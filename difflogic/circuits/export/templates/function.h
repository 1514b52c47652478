/* @NAME@.h: a controller as a circuit of logic gates, an observation in, the number of an action out. C99, no other files.
 * @ABOUT@
 *
 * Observation: @OBSERVATION_NAMES@.
 * Action: @ACTION_NAMES@.
 */
#ifndef DIFFLOGIC_@UPPER@_H
#define DIFFLOGIC_@UPPER@_H

#include <stdint.h>

#define @UPPER@_OBSERVATIONS @DIMENSIONS@ /* numbers of an observation */
#define @UPPER@_ACTIONS @ACTIONS@
#define @UPPER@_ACTION_BITS @ACTION_BITS@
#define @UPPER@_THRESHOLDS @INPUTS@
#define @UPPER@_WIDTH @WIDTH@ /* bits of a number in fixed point */
#define @UPPER@_FRACTION_BITS @FRACTION_BITS@ /* of these, bits behind the point */

/* The gates alone, for 64 observations at once, one per bit: code[i] is 1 where threshold i is reached, action[i] is bit i
 * of the action's number. */
static inline void @NAME@_gates(const uint64_t code[@UPPER@_THRESHOLDS], uint64_t action[@UPPER@_ACTION_BITS])
{
    (void)code; /* a constant action reads nothing */
    @BODY@
}

/* The number of the action at a code, each threshold 0 or 1. */
static inline int @NAME@_decide(const uint64_t code[@UPPER@_THRESHOLDS])
{
    uint64_t action[@UPPER@_ACTION_BITS];
    int number = 0;
    @NAME@_gates(code, action);
    for (int bit = 0; bit < @UPPER@_ACTION_BITS; bit++)
        number |= (int)(action[bit] & 1) << bit;
    return number;
}

/* The number of the action at an observation; what is no number is below every threshold. */
static inline int @NAME@_act(const double observation[@UPPER@_OBSERVATIONS])
{
    const uint64_t code[@UPPER@_THRESHOLDS] = {
        @ROWS@
    };
    return @NAME@_decide(code);
}

/* The same in fixed point: floor(x * 2^@FRACTION_BITS@) of each number x, which may be cut off at the ends of @WIDTH@ bits, two's
 * complement. Of this form and that in floating point: @AGREEMENT@. */
static inline int @NAME@_act_fixed(const int64_t observation[@UPPER@_OBSERVATIONS])
{
    const uint64_t code[@UPPER@_THRESHOLDS] = {
        @FIXED_ROWS@
    };
    return @NAME@_decide(code);
}

#endif
