-- @NAME@_tb.vhd: checks @NAME@.vhd against the @SAMPLE@s beside it. Reports PASS, or fails at the first difference.
--     ghdl -a --std=08 @NAME@.vhd @NAME@_tb.vhd && ghdl -e --std=08 @NAME@_tb && ghdl -r --std=08 @NAME@_tb

library ieee;
use ieee.std_logic_1164.all;
@WHERE REMEMBERS@
use ieee.numeric_std.all;
@END@
use std.textio.all;

entity @NAME@_tb is
end entity;

architecture checks of @NAME@_tb is
    signal seen  : std_logic_vector(@LAST_BIT@ downto 0) := (others => '0');
    signal found : std_logic_vector(@LAST_RESULT_BIT@ downto 0);
@WHERE REMEMBERS@
    signal clock, reset : std_logic := '0';
    signal taken : std_logic_vector(@LAST_CHOICE_BIT@ downto 0);
@END@
begin
    @KIND@_under_test : entity work.@NAME@_@KIND@ port map (@SAMPLE@ => seen, @RESULT@ => found);
@WHERE REMEMBERS@
    machine_under_test : entity work.@NAME@_machine
        port map (clock => clock, reset => reset, seen => seen(@LAST_SEEN_BIT@ downto 0), @RESULT@ => taken);
@END@

    process
        file rows         : text open read_mode is "@NAME@_tb.txt";
@WHERE REMEMBERS@
        file steps        : text open read_mode is "@NAME@_tb_steps.txt";
@END@
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
@WHERE REMEMBERS@
        -- A sequence: the first number of memory says whether an episode begins.
        while not endfile(steps) loop
            readline(steps, row);
            hread(row, given);
            hread(row, wanted);
            seen <= given;
            if unsigned(given(@LAST_SEEN_BIT@ + @WIDTH@ downto @LAST_SEEN_BIT@ + 1)) /= 0 then
                reset <= '1';
                wait for 1 ns;
                clock <= '1';
                wait for 1 ns;
                clock <= '0';
                reset <= '0';
            end if;
            wait for 1 ns;
            assert taken = wanted(@LAST_CHOICE_BIT@ downto 0) report "FAIL: in a sequence the @RESULT@ is "
                & to_hstring(taken) & " at " & to_hstring(given) & ", " & to_hstring(wanted) & " expected" severity failure;
            clock <= '1';
            wait for 1 ns;
            clock <= '0';
        end loop;
@END@
        assert observed > 0 report "FAIL: no @SAMPLE@s were read" severity failure;
        report "PASS: " & integer'image(observed) & " @SAMPLE@s";
        wait;
    end process;
end architecture;
