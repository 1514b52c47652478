// @NAME@.v: a cellular automaton whose rule is a circuit of logic gates.
// @ABOUT@
`timescale 1ns / 1ps
/* verilator lint_off DECLFILENAME */ // the modules belong together

// The new state of a cell: patch[9*channel + 3*dy + dx], dy and dx from 0 (above, left) to 2. Combinational.
module @NAME@_cell (
    /* verilator lint_off UNUSEDSIGNAL */ // a rule need not read its whole neighbourhood
    input  wire [@LAST_INPUT@:0] patch,
    /* verilator lint_on UNUSEDSIGNAL */
    output wire [@LAST_CHANNEL@:0] result
);
    @BODY@
endmodule

// What a grid of such cells becomes in a step: state[@CHANNELS@*(WIDTH*y + x) + channel]. Combinational.
module @NAME@_step #(
    parameter HEIGHT = 16,
    parameter WIDTH = 16
) (
    input  wire [@CHANNELS@*HEIGHT*WIDTH-1:0] state,
    output wire [@CHANNELS@*HEIGHT*WIDTH-1:0] stepped
);
    localparam CHANNELS = @CHANNELS@;
    localparam PERIODIC = @PERIODIC@; // 0: outside the grid every bit is 0

    genvar y, x, dy, dx, c;
    generate
        for (y = 0; y < HEIGHT; y = y + 1) begin : rows
            for (x = 0; x < WIDTH; x = x + 1) begin : cells
                wire [@LAST_INPUT@:0] patch;
                wire [@LAST_CHANNEL@:0] result;
                for (dy = 0; dy < 3; dy = dy + 1) begin : above
                    for (dx = 0; dx < 3; dx = dx + 1) begin : beside
                        localparam IN_GRID = y + dy > 0 && y + dy <= HEIGHT && x + dx > 0 && x + dx <= WIDTH;
                        localparam PLACE = (y + dy + HEIGHT - 1) % HEIGHT * WIDTH + (x + dx + WIDTH - 1) % WIDTH;
                        for (c = 0; c < CHANNELS; c = c + 1) begin : bits
                            if (PERIODIC || IN_GRID) begin : inner
                                assign patch[9*c + 3*dy + dx] = state[CHANNELS*PLACE + c];
                            end else begin : outer
                                assign patch[9*c + 3*dy + dx] = 1'b0;
                            end
                        end
                    end
                end
                @NAME@_cell one (.patch(patch), .result(result));
                assign stepped[CHANNELS*(WIDTH*y + x) +: CHANNELS] = result;
            end
        end
    endgenerate
endmodule
