// Life on a screen: an automaton that difflogic exports, shown at 640x480 (VGA, 60 Hz), one step every PERIOD frames.
//
// Between two frames the state goes once round through the automaton's words, a cell a word, and is copied on its way.
// So the picture never changes while it is drawn.
`timescale 1ns / 1ps

module life_screen #(
    parameter WIDTH = 20, // cells: with SIDE pixels each they fill the screen
    parameter HEIGHT = 15,
    parameter SIDE = 32,
    parameter CHANNELS = 1, // red, green and blue; one alone is white
    parameter PERIOD = 12,
    parameter H_FRONT = 16, // pixels and lines around the picture, as monitors know them
    parameter H_SYNC = 96,
    parameter H_BACK = 48,
    parameter V_FRONT = 10,
    parameter V_SYNC = 2,
    parameter V_BACK = 33
) (
    input  wire clk, // a pixel a clock: 25.175 MHz
    input  wire reset,
    output reg  hsync,
    output reg  vsync,
    output reg  [2:0] colour // blue, green, red
);
    localparam CELLS = WIDTH * HEIGHT;
    localparam COLUMNS = WIDTH * SIDE, LINES = HEIGHT * SIDE;
    localparam LAST_X = COLUMNS + H_FRONT + H_SYNC + H_BACK - 1;
    localparam LAST_Y = LINES + V_FRONT + V_SYNC + V_BACK - 1;

    generate
        // No such module: the tools stop here, and name it.
        if (CHANNELS > 3) begin : too_many
            this_board_has_three_colours_and_shows_at_most_three_channels error ();
        end
        if ((V_FRONT + V_SYNC + V_BACK - 1) * (LAST_X + 1) < CELLS + 4) begin : too_short
            there_is_no_time_between_two_frames_to_read_so_many_cells error ();
        end
    endgenerate

    // The automaton, and what it is told to do between two frames.
    localparam IDLE = 2'd0, STEP = 2'd1, RUN = 2'd2, READ = 2'd3;
    reg [1:0] phase;
    reg [15:0] cell_read, frame;
    reg [CHANNELS-1:0] picture[0:CELLS-1];
    wire [CHANNELS-1:0] word;
    wire busy;
    life_automaton #(.LANES(CHANNELS)) automaton (
        .clk(clk), .reset(reset), .enable(1'b1), .start(phase == STEP), .steps(16'd1), .busy(busy),
        .shift(phase == READ), .data_in(word), .data_out(word)
    );

    reg [15:0] x, y;
    wire drawn = x == 0 && y == LINES; // the last line of the picture is out

    always @(posedge clk)
        if (reset) begin
            phase <= READ; // the start is shown first
            cell_read <= 0;
            frame <= 0;
        end else
            case (phase)
                IDLE:
                    if (drawn) begin
                        frame <= frame == PERIOD - 1 ? 0 : frame + 16'd1;
                        if (frame == PERIOD - 1) phase <= STEP;
                    end
                STEP: phase <= RUN;
                RUN: if (!busy) phase <= READ;
                READ: begin
                    picture[cell_read] <= word;
                    cell_read <= cell_read == CELLS - 1 ? 0 : cell_read + 16'd1;
                    if (cell_read == CELLS - 1) phase <= IDLE;
                end
            endcase

    // The beam, and the cell under it: counted, for a division would be large. After a reset it waits below the picture.
    reg [15:0] in_column, in_row, column, row;
    always @(posedge clk)
        if (reset) begin
            {x, in_column, in_row, column, row} <= 0;
            y <= LINES + 1;
        end else begin
            x <= x == LAST_X ? 0 : x + 16'd1;
            in_column <= x == LAST_X || in_column == SIDE - 1 ? 0 : in_column + 16'd1;
            if (x == LAST_X) column <= 0;
            else if (in_column == SIDE - 1) column <= column + 16'd1;
            if (x == LAST_X) begin
                y <= y == LAST_Y ? 0 : y + 16'd1;
                in_row <= y == LAST_Y || in_row == SIDE - 1 ? 0 : in_row + 16'd1;
                if (y == LAST_Y) row <= 0; // the number of the first cell of its row
                else if (in_row == SIDE - 1) row <= row + WIDTH;
            end
        end

    // Two clocks later, on all wires alike: the memory's, and the outputs'.
    reg [CHANNELS-1:0] lit;
    reg shown, h, v;
    always @(posedge clk) begin
        lit <= picture[x < COLUMNS && y < LINES ? row + column : 0];
        shown <= x < COLUMNS && y < LINES;
        h <= !(x >= COLUMNS + H_FRONT && x < COLUMNS + H_FRONT + H_SYNC);
        v <= !(y >= LINES + V_FRONT && y < LINES + V_FRONT + V_SYNC);
        colour <= !shown ? 3'd0 : CHANNELS == 1 ? {3{lit[0]}} : {2'd0, lit};
        hsync <= h;
        vsync <= v;
    end
endmodule
