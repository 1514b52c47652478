// 1: four workgroups share a chunk. See common/tile.wgsl.
override SPLIT: u32 = 0u;

// Where a card should have the loads of all turns under way together, or keep an array in registers.
fn rolled_unless_split(end: u32) -> u32 {
    if SPLIT == 1u { return end; }
    return rolled(end);
}
