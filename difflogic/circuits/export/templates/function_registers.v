// Registers before and behind the @KIND@, through which bits are shifted: a sample goes in, and a result comes out.
module @NAME@_registers (input wire clock, input wire data_in, input wire load, output wire data_out);
    reg [@LAST_BIT@:0] given;
    reg [@LAST_RESULT_BIT@:0] shown;
    wire [@LAST_RESULT_BIT@:0] found;
    @NAME@_@KIND@ @KIND@_between (.@SAMPLE@(given), .@RESULT@(found));
    always @(posedge clock) begin
        given <= {given, data_in};
        shown <= load ? found : shown << 1;
    end
    assign data_out = shown[@LAST_RESULT_BIT@];
endmodule
