// @NAME@.v: a controller as a circuit of logic gates.
// @ABOUT@
// Observation: @OBSERVATION_NAMES@.
// Action: @ACTION_NAMES@.
`timescale 1ns / 1ps
/* verilator lint_off DECLFILENAME */ // a file may be called by a word of the language, a module may not

// observation[@WIDTH@*d +: @WIDTH@] is number d in fixed point, two's complement: floor(x * 2^@FRACTION_BITS@), which may be cut off at
// the ends of its range. action is the number of the action. Combinational. Of this form and that in floating point:
// @AGREEMENT@.
module @NAME@_controller (
    /* verilator lint_off UNUSEDSIGNAL */ // a controller need not read every number
    input  wire [@LAST_BIT@:0] observation,
    /* verilator lint_on UNUSEDSIGNAL */
    output wire [@LAST_ACTION_BIT@:0] action
);
    @BODY@
endmodule
