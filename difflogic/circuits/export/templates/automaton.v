
// A whole automaton of @WIDTH@x@HEIGHT@ cells behind few pins: a step a clock, and its state goes in and out word by word.
//
//     reset   takes the first state, START, and ends a run
//     enable  where it is 0 nothing changes, except by reset
//     start   begins a run of `steps` steps, one a clock; until it is over `busy` is 1, and start and shift are ignored
//     shift   the state moves on by a word: data_in becomes its last, and data_out, its first, is followed by the next
//
// A state is WORDS = ceil(@BITS@ / LANES) words, bit @CHANNELS@*(@WIDTH@*y + x) + channel, the lowest first; what the last word has
// left over keeps what was put there. So WORDS shifts read one state and put in the next. With data_out led to data_in
// they leave it as it was. With LANES = 1 the words are bits: serial.
module @NAME@_automaton #(
    parameter LANES = 8,
    parameter [@LAST_BIT@:0] START = @START@
) (
    input  wire clk,
    input  wire reset,
    input  wire enable,
    input  wire start,
    input  wire [15:0] steps,
    output reg  busy,
    input  wire shift,
    input  wire [LANES-1:0] data_in,
    output wire [LANES-1:0] data_out
);
    localparam BITS = @BITS@;
    localparam TOTAL = (BITS + LANES - 1) / LANES * LANES;

    reg [TOTAL-1:0] state;
    reg [15:0] left; // steps of the run
    wire [TOTAL-1:0] first, stepped, moved;

    assign first[BITS-1:0] = START;
    assign data_out = state[LANES-1:0];
    assign moved[TOTAL-1 -: LANES] = data_in;
    @NAME@_step #(.HEIGHT(@HEIGHT@), .WIDTH(@WIDTH@)) rule (.state(state[BITS-1:0]), .stepped(stepped[BITS-1:0]));
    generate
        if (TOTAL > LANES) begin : words
            assign moved[TOTAL-LANES-1:0] = state[TOTAL-1:LANES];
        end
        if (TOTAL > BITS) begin : rest
            assign first[TOTAL-1:BITS] = 0;
            assign stepped[TOTAL-1:BITS] = state[TOTAL-1:BITS];
        end
    endgenerate

    always @(posedge clk)
        if (reset) begin
            state <= first;
            left <= 0;
            busy <= 0;
        end else if (enable) begin
            if (busy) begin
                state <= stepped;
                left <= left - 16'd1;
                busy <= left != 16'd1;
            end else if (start) begin
                left <= steps;
                busy <= steps != 0;
            end else if (shift) state <= moved;
        end
endmodule
