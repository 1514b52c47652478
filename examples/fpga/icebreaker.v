// The iCEBreaker (iCE40UP5K) with Digilent's Pmod VGA in its connectors 1A and 1B. Its button begins again.
`timescale 1ns / 1ps

module icebreaker (
    input  wire clk_12mhz,
    input  wire button_n,
    output wire [3:0] red,
    output wire [3:0] green,
    output wire [3:0] blue,
    output wire hsync,
    output wire vsync
);
    // 12 MHz * 67 / 32 = 25.125 MHz, 0.2 % below what VGA asks for.
    wire clk, locked;
    SB_PLL40_PAD #(
        .FEEDBACK_PATH("SIMPLE"), .DIVR(4'd0), .DIVF(7'd66), .DIVQ(3'd5), .FILTER_RANGE(3'd1)
    ) pll (.PACKAGEPIN(clk_12mhz), .PLLOUTGLOBAL(clk), .LOCK(locked), .RESETB(1'b1), .BYPASS(1'b0));

    reg [1:0] pressed; // the button and the lock belong to no clock
    always @(posedge clk) pressed <= {pressed[0], !button_n || !locked};

    wire [2:0] colour;
    life_screen screen (.clk(clk), .reset(pressed[1]), .hsync(hsync), .vsync(vsync), .colour(colour));
    assign red = {4{colour[0]}}, green = {4{colour[1]}}, blue = {4{colour[2]}};
endmodule
