/* Runs @NAME@.h on observations as they lie in memory: each as doubles, then in fixed point; two actions for each. */
#include "@NAME@.h"

#include <stdio.h>

int main(void)
{
    double observation[@UPPER@_OBSERVATIONS];
    int64_t fixed[@UPPER@_OBSERVATIONS];
    while (fread(observation, sizeof *observation, @UPPER@_OBSERVATIONS, stdin) == @UPPER@_OBSERVATIONS
           && fread(fixed, sizeof *fixed, @UPPER@_OBSERVATIONS, stdin) == @UPPER@_OBSERVATIONS) {
        const int32_t actions[2] = {@NAME@_act(observation), @NAME@_act_fixed(fixed)};
        if (fwrite(actions, sizeof *actions, 2, stdout) != 2)
            return 1;
    }
    return 0;
}
