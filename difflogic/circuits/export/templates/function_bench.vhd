-- @NAME@_tb.vhd: checks @NAME@.vhd against the @SAMPLE@s beside it. Reports PASS, or fails at the first difference.
--     ghdl -a --std=08 @NAME@.vhd @NAME@_tb.vhd && ghdl -e --std=08 @NAME@_tb && ghdl -r --std=08 @NAME@_tb

library ieee;
use ieee.std_logic_1164.all;
use std.textio.all;

entity @NAME@_tb is
end entity;

architecture checks of @NAME@_tb is
    signal seen  : std_logic_vector(@LAST_BIT@ downto 0) := (others => '0');
    signal found : std_logic_vector(@LAST_RESULT_BIT@ downto 0);
begin
    @KIND@_under_test : entity work.@NAME@_@KIND@ port map (@SAMPLE@ => seen, @RESULT@ => found);

    process
        file rows         : text open read_mode is "@NAME@_tb.txt";
        variable row      : line;
        variable given    : std_logic_vector(@LAST_BIT@ downto 0);
        variable wanted   : std_logic_vector(@LAST_RESULT_BIT@ downto 0);
        variable observed : natural := 0;
    begin
        while not endfile(rows) loop
            readline(rows, row);
            hread(row, given);
            hread(row, wanted);
            seen <= given;
            wait for 1 ns;
            assert found = wanted report "FAIL: the @RESULT@ is " & to_hstring(found) & " at " & to_hstring(given)
                & ", " & to_hstring(wanted) & " expected" severity failure;
            observed := observed + 1;
        end loop;
        assert observed > 0 report "FAIL: no @SAMPLE@s were read" severity failure;
        report "PASS: " & integer'image(observed) & " @SAMPLE@s";
        wait;
    end process;
end architecture;
