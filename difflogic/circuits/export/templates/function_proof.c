@WHERE READS_NUMBERS@
/* Runs @NAME@.h on @SAMPLE@s as they lie in memory: each as doubles, then in fixed point; two answers for each. */
@END@
@WHERE READS_BITS@
/* Runs @NAME@.h on words of 64 samples, one of each input; then those of each result. */
@END@
#include "@NAME@.h"

#include <stdio.h>

int main(int count, char **words)
{
    (void)count, (void)words;
@WHERE REMEMBERS@
    /* With a word they are a sequence: where the first bit of memory is set, an episode begins. */
    uint32_t memory[2] = {0, 0};
    const int is_sequence = count > 1;
@END@
@WHERE READS_NUMBERS@
    double @SAMPLE@[@UPPER@_@INPUTS_UPPER@];
    int64_t fixed[@UPPER@_@INPUTS_UPPER@];
    while (fread(@SAMPLE@, sizeof *@SAMPLE@, @UPPER@_@INPUTS_UPPER@, stdin) == @UPPER@_@INPUTS_UPPER@
           && fread(fixed, sizeof *fixed, @UPPER@_@INPUTS_UPPER@, stdin) == @UPPER@_@INPUTS_UPPER@) {
        int32_t numbers[2] = {@NAME@_@VERB@(@SAMPLE@), @NAME@_@VERB@_fixed(fixed)};
@END@
@WHERE REMEMBERS@
        if (is_sequence) {
            if (fixed[@UPPER@_SEEN])
                memory[0] = memory[1] = 0;
            numbers[0] = @NAME@_step(&memory[0], @SAMPLE@);
            numbers[1] = @NAME@_step_fixed(&memory[1], fixed);
        }
@END@
@WHERE READS_NUMBERS@
        if (fwrite(numbers, sizeof *numbers, 2, stdout) != 2)
            return 1;
    }
@END@
@WHERE READS_BITS@
    static uint64_t code[@UPPER@_INPUTS], result[@UPPER@_RESULT_BITS];
    while (fread(code, sizeof *code, @UPPER@_INPUTS, stdin) == @UPPER@_INPUTS) {
        @NAME@_gates(code, result);
        if (fwrite(result, sizeof *result, @UPPER@_RESULT_BITS, stdout) != @UPPER@_RESULT_BITS)
            return 1;
    }
@END@
    return 0;
}
