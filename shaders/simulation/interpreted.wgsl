// Interpreter for a circuit of any size, encoded as a table: program [patches + gates + C].
//
// A patch (channel, 0, dy, dx) is stored in the node with its index; a gate (id, a, b, out) reads nodes a and b and
// writes node out; an output is (node, 0, 0, 0). nodes [slots, workers].

fn gate_word(id: u32, a: u32, b: u32) -> u32 {
    let f = vec4<u32>() - (vec4<u32>(id >> 3u, id >> 2u, id >> 1u, id) & vec4<u32>(1u));
    return (~a & ((~b & f.x) | (b & f.y))) | (a & ((~b & f.z) | (b & f.w)));
}

fn next_words(place: Place, fire: u32) {
    for (var i = 0u; i < spec.patches; i++) {
        let line = program[i];
        nodes[i * place.workers + place.worker] = patch_word(place, line.x, i32(line.z) - 1, i32(line.w) - 1);
    }
    for (var i = 0u; i < spec.gates; i++) {
        let line = program[spec.patches + i];
        let a = nodes[line.y * place.workers + place.worker];
        let b = nodes[line.z * place.workers + place.worker];
        nodes[line.w * place.workers + place.worker] = gate_word(line.x, a, b);
    }
    for (var channel = 0u; channel < spec.channels; channel++) {
        let node = program[spec.patches + spec.gates + channel].x;
        write_word(place, channel, nodes[node * place.workers + place.worker], fire);
    }
}
