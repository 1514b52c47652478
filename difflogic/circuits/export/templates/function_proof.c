@WHERE READS_NUMBERS@
/* Runs @NAME@.h on @SAMPLE@s as they lie in memory: each as doubles, then in fixed point; two answers for each. */
@END@
@WHERE READS_BITS@
/* Runs @NAME@.h on words of 64 samples, one of each input; then those of each result. */
@END@
#include "@NAME@.h"

#include <stdio.h>

int main(void)
{
@WHERE READS_NUMBERS@
    double @SAMPLE@[@UPPER@_@INPUTS_UPPER@];
    int64_t fixed[@UPPER@_@INPUTS_UPPER@];
    while (fread(@SAMPLE@, sizeof *@SAMPLE@, @UPPER@_@INPUTS_UPPER@, stdin) == @UPPER@_@INPUTS_UPPER@
           && fread(fixed, sizeof *fixed, @UPPER@_@INPUTS_UPPER@, stdin) == @UPPER@_@INPUTS_UPPER@) {
        const int32_t numbers[2] = {@NAME@_@VERB@(@SAMPLE@), @NAME@_@VERB@_fixed(fixed)};
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
