-- @NAME@.vhd: a cellular automaton whose rule is a circuit of logic gates.
-- @ABOUT@

library ieee;
use ieee.std_logic_1164.all;

-- The new state of a cell: patch(9*channel + 3*dy + dx), dy and dx from 0 (above, left) to 2. Combinational.
entity @NAME@_cell is
    port (
        patch  : in  std_logic_vector(@LAST_INPUT@ downto 0);
        result : out std_logic_vector(@LAST_CHANNEL@ downto 0)
    );
end entity;

architecture gates of @NAME@_cell is
begin
    process (patch)
        @VARIABLES@
    begin
        @BODY@
    end process;
end architecture;

library ieee;
use ieee.std_logic_1164.all;

-- A grid of such cells: state(@CHANNELS@*(WIDTH*y + x) + channel). At a rising edge of clk every cell takes `start` where
-- load is 1, else its new state where its bit of fire, WIDTH*y + x, is 1: all ones is the synchronous automaton.
entity @NAME@_grid is
    generic (
        HEIGHT : positive := 16;
        WIDTH  : positive := 16
    );
    port (
        clk   : in  std_logic;
        load  : in  std_logic;
        start : in  std_logic_vector(@CHANNELS@*HEIGHT*WIDTH - 1 downto 0);
        fire  : in  std_logic_vector(HEIGHT*WIDTH - 1 downto 0);
        state : out std_logic_vector(@CHANNELS@*HEIGHT*WIDTH - 1 downto 0)
    );
end entity;

architecture cells of @NAME@_grid is
    constant CHANNELS : positive := @CHANNELS@;
    constant PERIODIC : boolean := @PERIODIC@; -- false: outside the grid every bit is 0
    signal held : std_logic_vector(CHANNELS*HEIGHT*WIDTH - 1 downto 0);
begin
    state <= held;

    rows : for y in 0 to HEIGHT - 1 generate
        columns : for x in 0 to WIDTH - 1 generate
            constant FIRST : natural := CHANNELS*(WIDTH*y + x);
            signal patch   : std_logic_vector(@LAST_INPUT@ downto 0);
            signal result  : std_logic_vector(@LAST_CHANNEL@ downto 0);
        begin
            above : for dy in 0 to 2 generate
                beside : for dx in 0 to 2 generate
                    constant IN_GRID : boolean := y + dy > 0 and y + dy <= HEIGHT and x + dx > 0 and x + dx <= WIDTH;
                    constant PLACE   : natural :=
                        (y + dy + HEIGHT - 1) mod HEIGHT * WIDTH + (x + dx + WIDTH - 1) mod WIDTH;
                begin
                    bits : for c in 0 to CHANNELS - 1 generate
                        inner : if PERIODIC or IN_GRID generate
                            patch(9*c + 3*dy + dx) <= held(CHANNELS*PLACE + c);
                        end generate;
                        outer : if not (PERIODIC or IN_GRID) generate
                            patch(9*c + 3*dy + dx) <= '0';
                        end generate;
                    end generate;
                end generate;
            end generate;

            one : entity work.@NAME@_cell port map (patch => patch, result => result);

            process (clk)
            begin
                if rising_edge(clk) then
                    if load = '1' then
                        held(FIRST + CHANNELS - 1 downto FIRST) <= start(FIRST + CHANNELS - 1 downto FIRST);
                    elsif fire(WIDTH*y + x) = '1' then
                        held(FIRST + CHANNELS - 1 downto FIRST) <= result;
                    end if;
                end if;
            end process;
        end generate;
    end generate;
end architecture;
