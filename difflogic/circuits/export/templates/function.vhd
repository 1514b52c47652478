-- @NAME@.vhd: a @KIND@ as a circuit of logic gates.
-- @ABOUT@
-- @SAMPLE_TITLE@: @SAMPLE_NAMES@.
-- @RESULT_TITLE@: @RESULT_NAMES@.

library ieee;
use ieee.std_logic_1164.all;
use ieee.numeric_std.all;

@WHERE READS_NUMBERS@
-- The @WIDTH@ bits of @SAMPLE@ from @WIDTH@*d on are number d in fixed point, two's complement: floor(x * 2^@FRACTION_BITS@), which may
-- be cut off at the ends of its range. @RESULT@ is the number of the @CHOICE@. Combinational. Of this form and that in
-- floating point: @AGREEMENT@.
@END@
@WHERE READS_BITS@
-- @SAMPLE@(i) is input i, @RESULT@(i) is @RESULT_SAID@. Combinational.
@END@
entity @NAME@_@KIND@ is
    port (
        @SAMPLE@ : in  std_logic_vector(@LAST_BIT@ downto 0);
        @RESULT@ : out std_logic_vector(@LAST_RESULT_BIT@ downto 0)
    );
end entity;

architecture gates of @NAME@_@KIND@ is
@WHERE READS_NUMBERS@
    function reached(number, threshold : std_logic_vector(@WIDTH@ - 1 downto 0)) return std_logic is
    begin
        if signed(number) >= signed(threshold) then
            return '1';
        end if;
        return '0';
    end function;
@END@
begin
    process (@SAMPLE@)
        @VARIABLES@
    begin
        @BODY@
    end process;
end architecture;
