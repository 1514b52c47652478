// @NAME@_tb.v: checks @NAME@.v against the states beside it. Prints PASS, or FAIL with the first difference.
//     iverilog -g2012 -o @NAME@_tb @NAME@.v @NAME@_tb.v && vvp @NAME@_tb
`timescale 1ns / 1ps

module @NAME@_tb;
    parameter LANES = 8;
    localparam WORDS = (@BITS@ + LANES - 1) / LANES;

    reg clk, reset, enable, start, shift;
    reg [15:0] steps;
    reg [LANES-1:0] data_in;
    wire [LANES-1:0] data_out;
    wire busy;
    @NAME@_automaton #(.LANES(LANES)) under_test (
        .clk(clk), .reset(reset), .enable(enable), .start(start), .steps(steps), .busy(busy),
        .shift(shift), .data_in(data_in), .data_out(data_out)
    );

    reg [WORDS*LANES-1:0] wanted, found;
    integer opened, word, waited, lines;

    // Two edges of the clock, at the first of which the automaton must stand still.
    task tick;
        begin
            enable = 0;
            #1 clk = 1;
            #1 clk = 0;
            enable = 1;
            #1 clk = 1;
            #1 clk = 0;
        end
    endtask

    // Reads the state into `found`, and puts `wanted` into its place.
    task exchange;
        begin
            shift = 1;
            for (word = 0; word < WORDS; word = word + 1) begin
                found[LANES*word +: LANES] = data_out;
                data_in = wanted[LANES*word +: LANES];
                tick;
            end
            shift = 0;
        end
    endtask

    initial begin
        {clk, enable, start, shift, data_in} = 0;
        lines = 0;
        reset = 1;
        #1 clk = 1;
        #1 clk = 0;
        reset = 0;
        opened = $fopen("@NAME@_tb_states.txt", "r");
        // A line: the steps from the state before, and the state after them. First the state after a reset, without a
        // step; then, marked as 65535 steps, one that is put in.
        while ($fscanf(opened, "%h %h\n", steps, wanted) == 2) begin
            waited = 0;
            if (steps != 0 && steps != 16'hffff) begin
                start = 1;
                tick;
                start = 0;
                while (busy && waited <= steps) begin
                    tick;
                    waited = waited + 1;
                end
                if (waited != steps) begin
                    $display("FAIL: a run of %0d steps took %0d clocks", steps, waited);
                    $finish;
                end
            end
            exchange;
            if (steps != 16'hffff && found !== wanted) begin
                $display("FAIL: after line %0d the state is %h, %h expected", lines, found, wanted);
                $finish;
            end
            lines = lines + 1;
        end
        $fclose(opened);
        if (lines < 3) $display("FAIL: no states were read");
        else $display("PASS: %0d states, %0d bits a word", lines, LANES);
        $finish;
    end
endmodule
