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
@WHERE REMEMBERS@

// The same with registers for its memory, the last @MEMORY@ numbers: @RESULT@ is that at what is seen before the clock rises,
// when the memory of it is taken over. Where reset is 1 as the clock rises, an episode begins.
module @NAME@_machine (
    input  wire clock,
    input  wire reset,
    input  wire [@LAST_SEEN_BIT@:0] seen,
    output wire [@LAST_CHOICE_BIT@:0] @RESULT@
);
    reg [@LAST_MEMORY_BIT@:0] memory;
    wire [@LAST_MEMORY_BIT@:0] next;
    wire [@MEMORY@*@WIDTH@-1:0] numbers;
    genvar k;
    generate
        for (k = 0; k < @MEMORY@; k = k + 1) begin : bits
            assign numbers[@WIDTH@*k +: @WIDTH@] = {1'b0, {(@WIDTH@-1){memory[k]}}};
        end
    endgenerate
    @NAME@_@KIND@ gates (.@SAMPLE@({numbers, seen}), .@RESULT@({next, @RESULT@}));
    always @(posedge clock) memory <= reset ? @MEMORY@'d0 : next;
endmodule
@END@
