-- @NAME@_tb.vhd: checks @NAME@.vhd against the vectors beside it. Reports PASS, or fails at the first difference.
--     ghdl -a --std=08 @NAME@.vhd @NAME@_tb.vhd && ghdl -e --std=08 @NAME@_tb && ghdl -r --std=08 @NAME@_tb

library ieee;
use ieee.std_logic_1164.all;
use std.textio.all;

entity @NAME@_tb is
end entity;

architecture checks of @NAME@_tb is
    signal patch  : std_logic_vector(@LAST_INPUT@ downto 0) := (others => '0');
    signal result : std_logic_vector(@LAST_CHANNEL@ downto 0);
    signal clk    : std_logic := '0';
    signal load   : std_logic := '1';
    signal start  : std_logic_vector(@LAST_BIT@ downto 0) := (others => '0');
    signal fire   : std_logic_vector(@LAST_CELL@ downto 0) := (others => '1');
    signal state  : std_logic_vector(@LAST_BIT@ downto 0);
begin
    cell_under_test : entity work.@NAME@_cell port map (patch => patch, result => result);

    grid_under_test : entity work.@NAME@_grid
        generic map (HEIGHT => @HEIGHT@, WIDTH => @WIDTH@)
        port map (clk => clk, load => load, start => start, fire => fire, state => state);

    process
        file cells     : text open read_mode is "@NAME@_tb_cell.txt";
        file steps     : text open read_mode is "@NAME@_tb_grid.txt";
        variable row   : line;
        variable a     : std_logic_vector(@LAST_INPUT@ downto 0);
        variable b     : std_logic_vector(@LAST_CHANNEL@ downto 0);
        variable f     : std_logic_vector(@LAST_CELL@ downto 0);
        variable s     : std_logic_vector(@LAST_BIT@ downto 0);
        variable vectors, done : natural := 0;
    begin
        while not endfile(cells) loop
            readline(cells, row);
            hread(row, a);
            hread(row, b);
            patch <= a;
            wait for 1 ns;
            assert result = b report "FAIL: the cell answers " & to_hstring(result) & " to " & to_hstring(a) & ", "
                & to_hstring(b) & " expected" severity failure;
            vectors := vectors + 1;
        end loop;
        while not endfile(steps) loop
            readline(steps, row);
            hread(row, f);
            hread(row, s);
            fire <= f;
            start <= s;
            wait for 1 ns;
            clk <= '1';
            wait for 1 ns;
            clk <= '0';
            load <= '0';
            assert state = s report "FAIL: after step " & integer'image(done) & " the grid is " & to_hstring(state) & ", "
                & to_hstring(s) & " expected" severity failure;
            done := done + 1;
        end loop;
        assert vectors > 0 and done > 0 report "FAIL: no vectors were read" severity failure;
        report "PASS: " & integer'image(vectors) & " vectors, " & integer'image(done - 1) & " steps";
        wait;
    end process;
end architecture;
