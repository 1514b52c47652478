
// Such a grid with its registers. At a rising edge of clk every cell takes `start` where load is 1, else its new state
// where its bit of fire, WIDTH*y + x, is 1: all ones is the synchronous automaton.
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

    wire [CHANNELS*HEIGHT*WIDTH-1:0] stepped;

    @NAME@_step #(.HEIGHT(HEIGHT), .WIDTH(WIDTH)) rule (.state(state), .stepped(stepped));

    integer place;
    always @(posedge clk)
        if (load) state <= start;
        else
            for (place = 0; place < HEIGHT*WIDTH; place = place + 1)
                if (fire[place]) state[CHANNELS*place +: CHANNELS] <= stepped[CHANNELS*place +: CHANNELS];
endmodule
