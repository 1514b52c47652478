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
@WHERE REMEMBERS@

library ieee;
use ieee.std_logic_1164.all;

-- The same with registers for its memory, the last @MEMORY@ numbers: @RESULT@ is that at what is seen before the clock rises,
-- when the memory of it is taken over. Where reset is 1 as the clock rises, an episode begins.
entity @NAME@_machine is
    port (
        clock : in  std_logic;
        reset : in  std_logic;
        seen  : in  std_logic_vector(@LAST_SEEN_BIT@ downto 0);
        @RESULT@ : out std_logic_vector(@LAST_CHOICE_BIT@ downto 0)
    );
end entity;

architecture registers of @NAME@_machine is
    signal memory : std_logic_vector(@LAST_MEMORY_BIT@ downto 0) := (others => '0');
    signal given  : std_logic_vector(@LAST_BIT@ downto 0);
    signal found  : std_logic_vector(@LAST_RESULT_BIT@ downto 0);
begin
    gates : entity work.@NAME@_@KIND@ port map (@SAMPLE@ => given, @RESULT@ => found);
    given(@LAST_SEEN_BIT@ downto 0) <= seen;
    numbers : for k in 0 to @LAST_MEMORY_BIT@ generate
        given(@LAST_SEEN_BIT@ + @WIDTH@*(k + 1)) <= '0';
        given(@LAST_SEEN_BIT@ + @WIDTH@*(k + 1) - 1 downto @LAST_SEEN_BIT@ + @WIDTH@*k + 1) <= (others => memory(k));
    end generate;
    @RESULT@ <= found(@LAST_CHOICE_BIT@ downto 0);

    process (clock)
    begin
        if rising_edge(clock) then
            if reset = '1' then
                memory <= (others => '0');
            else
                memory <= found(@LAST_RESULT_BIT@ downto @LAST_CHOICE_BIT@ + 1);
            end if;
        end if;
    end process;
end architecture;
@END@
