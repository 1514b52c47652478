// @NAME@.v: a cellular automaton whose rule is a circuit of logic gates.
// @ABOUT@
`timescale 1ns / 1ps
/* verilator lint_off DECLFILENAME */ // the two modules belong together

// The new state of a cell: patch[9*channel + 3*dy + dx], dy and dx from 0 (above, left) to 2. Combinational.
module @NAME@_cell (
    /* verilator lint_off UNUSEDSIGNAL */ // a rule need not read its whole neighbourhood
    input  wire [@LAST_INPUT@:0] patch,
    /* verilator lint_on UNUSEDSIGNAL */
    output wire [@LAST_CHANNEL@:0] result
);
    @BODY@
endmodule

// A grid of such cells: state[@CHANNELS@*(WIDTH*y + x) + channel]. At a rising edge of clk every cell takes `start` where
// load is 1, else its new state where its bit of fire, WIDTH*y + x, is 1: all ones is the synchronous automaton.
module @NAME@_grid #(
    parameter HEIGHT = 16,
    parameter WIDTH = 16
) (
    input  wire clk,
    input  wire load,
    input  wire [@CHANNELS@*HEIGHT*WIDTH-1:0] start,
    input  wire [HEIGHT*WIDTH-1:0] fire,
    output reg  [@CHANNELS@*HEIGHT*WIDTH-1:0] state
);
    localparam CHANNELS = @CHANNELS@;
    localparam PERIODIC = @PERIODIC@; // 0: outside the grid every bit is 0

    wire [CHANNELS*HEIGHT*WIDTH-1:0] stepped;

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
                assign stepped[CHANNELS*(WIDTH*y + x) +: CHANNELS] =
                    fire[WIDTH*y + x] ? result : state[CHANNELS*(WIDTH*y + x) +: CHANNELS];
            end
        end
    endgenerate

    always @(posedge clk) state <= load ? start : stepped;
endmodule
