// @NAME@.v: a @KIND@ as a circuit of logic gates.
// @ABOUT@
// @SAMPLE_TITLE@: @SAMPLE_NAMES@.
// @RESULT_TITLE@: @RESULT_NAMES@.
`timescale 1ns / 1ps
/* verilator lint_off DECLFILENAME */ // a file may be called by a word of the language, a module may not

@WHERE READS_NUMBERS@
// @SAMPLE@[@WIDTH@*d +: @WIDTH@] is number d in fixed point, two's complement: floor(x * 2^@FRACTION_BITS@), which may be cut off at
// the ends of its range. @RESULT@ is the number of the @CHOICE@. Combinational. Of this form and that in floating point:
// @AGREEMENT@.
@END@
@WHERE READS_BITS@
// @SAMPLE@[i] is input i, @RESULT@[i] is @RESULT_SAID@. Combinational.
@END@
module @NAME@_@KIND@ (
    /* verilator lint_off UNUSEDSIGNAL */ // a @KIND@ need not read every number
    input  wire [@LAST_BIT@:0] @SAMPLE@,
    /* verilator lint_on UNUSEDSIGNAL */
    output wire [@LAST_RESULT_BIT@:0] @RESULT@
);
    @BODY@
endmodule
