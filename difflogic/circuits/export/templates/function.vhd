-- @NAME@.vhd: a controller as a circuit of logic gates.
-- @ABOUT@
-- Observation: @OBSERVATION_NAMES@.
-- Action: @ACTION_NAMES@.

library ieee;
use ieee.std_logic_1164.all;
use ieee.numeric_std.all;

-- The @WIDTH@ bits of observation from @WIDTH@*d on are number d in fixed point, two's complement: floor(x * 2^@FRACTION_BITS@), which may
-- be cut off at the ends of its range. action is the number of the action. Combinational. Of this form and that in
-- floating point: @AGREEMENT@.
entity @NAME@_controller is
    port (
        observation : in  std_logic_vector(@LAST_BIT@ downto 0);
        action      : out std_logic_vector(@LAST_ACTION_BIT@ downto 0)
    );
end entity;

architecture gates of @NAME@_controller is
    function reached(number, threshold : std_logic_vector(@WIDTH@ - 1 downto 0)) return std_logic is
    begin
        if signed(number) >= signed(threshold) then
            return '1';
        end if;
        return '0';
    end function;
begin
    process (observation)
        @VARIABLES@
    begin
        @BODY@
    end process;
end architecture;
