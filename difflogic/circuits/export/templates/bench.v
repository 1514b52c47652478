// @NAME@_tb.v: checks @NAME@.v against the vectors beside it. Prints PASS, or FAIL with the first difference.
//     iverilog -g2012 -o @NAME@_tb @NAME@.v @NAME@_tb.v && vvp @NAME@_tb
`timescale 1ns / 1ps

module @NAME@_tb;
    reg [@INPUTS@-1:0] patch;
    wire [@CHANNELS@-1:0] result;
    reg [@CHANNELS@-1:0] expected;
    @NAME@_cell cell_under_test (.patch(patch), .result(result));

    reg clk, load;
    reg [@CELLS@-1:0] fire;
    reg [@CHANNELS@*@CELLS@-1:0] wanted;
    wire [@CHANNELS@*@CELLS@-1:0] state;
    @NAME@_grid #(.HEIGHT(@HEIGHT@), .WIDTH(@WIDTH@)) grid_under_test (
        .clk(clk), .load(load), .start(wanted), .fire(fire), .state(state)
    );

    integer opened, vectors, steps;
    initial begin
        vectors = 0;
        opened = $fopen("@NAME@_tb_cell.txt", "r");
        while ($fscanf(opened, "%h %h\n", patch, expected) == 2) begin
            #1 vectors = vectors + 1;
            if (result !== expected) begin
                $display("FAIL: the cell answers %h to %h, %h expected", result, patch, expected);
                $finish;
            end
        end
        $fclose(opened);

        steps = 0;
        load = 1;
        clk = 0;
        opened = $fopen("@NAME@_tb_grid.txt", "r");
        while ($fscanf(opened, "%h %h\n", fire, wanted) == 2) begin
            #1 clk = 1;
            #1 clk = 0;
            load = 0;
            if (state !== wanted) begin
                $display("FAIL: after step %0d the grid is %h, %h expected", steps, state, wanted);
                $finish;
            end
            steps = steps + 1;
        end
        $fclose(opened);
        if (vectors == 0 || steps == 0) $display("FAIL: no vectors were read");
        else $display("PASS: %0d vectors, %0d steps", vectors, steps - 1);
        $finish;
    end
endmodule
