// @NAME@_tb.v: checks @NAME@.v against the @SAMPLE@s beside it. Prints PASS, or FAIL with the first difference.
//     iverilog -g2012 -o @NAME@_tb @NAME@.v @NAME@_tb.v && vvp @NAME@_tb
`timescale 1ns / 1ps

module @NAME@_tb;
    reg [@LAST_BIT@:0] given;
    wire [@LAST_RESULT_BIT@:0] found;
    reg [@LAST_RESULT_BIT@:0] expected;
    @NAME@_@KIND@ @KIND@_under_test (.@SAMPLE@(given), .@RESULT@(found));

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
        if (count == 0) $display("FAIL: no @SAMPLE@s were read");
        else $display("PASS: %0d @SAMPLE@s", count);
        $finish;
    end
endmodule
