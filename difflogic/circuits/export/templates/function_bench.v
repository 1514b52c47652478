// @NAME@_tb.v: checks @NAME@.v against the observations beside it. Prints PASS, or FAIL with the first difference.
//     iverilog -g2012 -o @NAME@_tb @NAME@.v @NAME@_tb.v && vvp @NAME@_tb
`timescale 1ns / 1ps

module @NAME@_tb;
    reg [@LAST_BIT@:0] observation;
    wire [@LAST_ACTION_BIT@:0] action;
    reg [@LAST_ACTION_BIT@:0] expected;
    @NAME@_controller controller_under_test (.observation(observation), .action(action));

    integer opened, observations;
    initial begin
        observations = 0;
        opened = $fopen("@NAME@_tb.txt", "r");
        while ($fscanf(opened, "%h %h\n", observation, expected) == 2) begin
            #1 observations = observations + 1;
            if (action !== expected) begin
                $display("FAIL: the action is %h at %h, %h expected", action, observation, expected);
                $finish;
            end
        end
        $fclose(opened);
        if (observations == 0) $display("FAIL: no observations were read");
        else $display("PASS: %0d observations", observations);
        $finish;
    end
endmodule
