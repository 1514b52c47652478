// A monitor: finds the picture by the two sync wires alone, and prints each frame, a digit a cell.
`timescale 1ns / 1ps

module film_tb;
    parameter WIDTH = 20, HEIGHT = 15, SIDE = 32, PERIOD = 1, FRAMES = 8;
    parameter H_FRONT = 16, H_SYNC = 96, H_BACK = 48, V_FRONT = 10, V_SYNC = 2, V_BACK = 33;

    reg clk = 0, reset = 1, hsync_before = 1, vsync_before = 1;
    wire hsync, vsync;
    wire [2:0] colour;
    life_screen #(
        .WIDTH(WIDTH), .HEIGHT(HEIGHT), .SIDE(SIDE), .PERIOD(PERIOD), .H_FRONT(H_FRONT), .H_SYNC(H_SYNC),
        .H_BACK(H_BACK), .V_FRONT(V_FRONT), .V_SYNC(V_SYNC), .V_BACK(V_BACK)
    ) screen (.clk(clk), .reset(reset), .hsync(hsync), .vsync(vsync), .colour(colour));

    integer frame = -1, x = 0, y = 0, left, top;
    always #20 clk = !clk;
    initial #100 reset = 0;

    always @(negedge clk)
        if (!reset) begin
            x = x + 1;
            if (hsync_before && !hsync) begin
                x = 0;
                y = y + 1;
            end
            if (vsync_before && !vsync) begin
                y = 0;
                frame = frame + 1;
                if (frame == FRAMES) $finish;
            end
            hsync_before = hsync;
            vsync_before = vsync;
            left = x - H_SYNC - H_BACK - SIDE / 2;
            top = y - V_SYNC - V_BACK - SIDE / 2;
            if (frame >= 0 && top >= 0 && top < HEIGHT * SIDE && top % SIDE == 0 && left >= 0 && left < WIDTH * SIDE) begin
                if (left % SIDE == 0) $write("%0d", colour);
                if (left == (WIDTH - 1) * SIDE) $write("\n");
            end
        end
endmodule
