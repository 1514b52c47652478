// Four entries of the first operand `a`, for the i-th four of the result.

override REPEAT_A: bool;

fn entry_of_a(place: u32) -> f32 { return a[place / 4u][place % 4u]; }

fn four_of_a(i: u32) -> vec4<f32> {
    if FOURS {
        let place = places(i).x;
        if REPEAT_A { return vec4(entry_of_a(place)); }
        return a[place];
    }
    var four = vec4<f32>();
    for (var k = 0u; k < 4u; k++) { four[k] = entry_of_a(places(4u * i + k).x); }
    return four;
}
