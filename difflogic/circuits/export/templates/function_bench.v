// @NAME@_tb.v: checks @NAME@.v against the @SAMPLE@s beside it. Prints PASS, or FAIL with the first difference.
//     iverilog -g2012 -o @NAME@_tb @NAME@.v @NAME@_tb.v && vvp @NAME@_tb
`timescale 1ns / 1ps

module @NAME@_tb;
    reg [@LAST_BIT@:0] given;
    wire [@LAST_RESULT_BIT@:0] found;
    reg [@LAST_RESULT_BIT@:0] expected;
    @NAME@_@KIND@ @KIND@_under_test (.@SAMPLE@(given), .@RESULT@(found));

@WHERE REMEMBERS@
    reg clock, reset;
    wire [@LAST_CHOICE_BIT@:0] taken;
    @NAME@_machine machine_under_test (.clock(clock), .reset(reset), .seen(given[@LAST_SEEN_BIT@:0]), .@RESULT@(taken));
@END@

    integer opened, count;
    initial begin
        count = 0;
        opened = $fopen("@NAME@_tb.txt", "r");
        while ($fscanf(opened, "%h %h\n", given, expected) == 2) begin
            #1 count = count + 1;
            if (found !== expected) begin
                $display("FAIL: the @RESULT@ is %h at %h, %h expected", found, given, expected);
                $finish;
            end
        end
        $fclose(opened);
@WHERE REMEMBERS@
        // A sequence: the first number of memory says whether an episode begins.
        clock = 0;
        opened = $fopen("@NAME@_tb_steps.txt", "r");
        while ($fscanf(opened, "%h %h\n", given, expected) == 2) begin
            reset = |given[@LAST_SEEN_BIT@+1 +: @WIDTH@];
            if (reset) begin
                #1 clock = 1;
                #1 clock = 0;
            end
            reset = 0;
            #1 if (taken !== expected[@LAST_CHOICE_BIT@:0]) begin
                $display("FAIL: in a sequence the @RESULT@ is %h at %h, %h expected", taken, given, expected);
                $finish;
            end
            clock = 1;
            #1 clock = 0;
        end
        $fclose(opened);
@END@
        if (count == 0) $display("FAIL: no @SAMPLE@s were read");
        else $display("PASS: %0d @SAMPLE@s", count);
        $finish;
    end
endmodule
