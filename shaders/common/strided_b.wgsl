// Four entries of the second operand `b`, for the i-th four of the result.

override REPEAT_B: bool;

fn entry_of_b(place: u32) -> f32 { return b[place / 4u][place % 4u]; }

fn four_of_b(i: u32) -> vec4<f32> {
    if FOURS {
        let place = places(i).y;
        if REPEAT_B { return vec4(entry_of_b(place)); }
        return b[place];
    }
    var four = vec4<f32>();
    for (var k = 0u; k < 4u; k++) { four[k] = entry_of_b(places(4u * i + k).y); }
    return four;
}
