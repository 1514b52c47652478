// y = a @ b; each operand may be transposed.
//
//     y[r, c] = sum over k of a[r, k] * b[k, c]
// A workgroup of 16 x 16 invocations computes a tile of 64 x 64 entries, each invocation 4 x 4 of them in registers;
// under WIDE, on a card with enough tiles, 128 x 128 and 8 x 8. Tiles of a and b are 16 deep; k is summed in order.
// Reference: difflogic/tensor/kernels/matmul.py
// Dispatch: x = tiles, at most 65535, then workgroups loop.
// Shapes: a [rows, inner], or under TRANSPOSE_A [inner, rows]; b [inner, columns], or [columns, inner];
//     y [rows, columns].

struct Shape { rows: u32, columns: u32, inner: u32 }

@group(0) @binding(0) var<uniform> shape: Shape;
@group(0) @binding(1) var<storage, read> a: array<f32>;
@group(0) @binding(2) var<storage, read> b: array<f32>;
@group(0) @binding(3) var<storage, read_write> y: array<f32>;

override TRANSPOSE_A: bool;
override TRANSPOSE_B: bool;
override WIDE: bool;

const SIDE = 16u;
const INVOCATIONS = 256u;

const FOURS = 512u;

// [depth][four rows] and [depth][four columns]; for a wide tile, first those of one half, then of the other.
var<workgroup> a_tile: array<vec4<f32>, FOURS>;
var<workgroup> b_tile: array<vec4<f32>, FOURS>;

fn load_a(row: u32, k: u32) -> f32 {
    if row >= shape.rows || k >= shape.inner { return 0.0; }
    return a[select(row * shape.inner + k, k * shape.rows + row, TRANSPOSE_A)];
}

fn load_b(k: u32, column: u32) -> f32 {
    if column >= shape.columns || k >= shape.inner { return 0.0; }
    return b[select(k * shape.columns + column, column * shape.inner + k, TRANSPOSE_B)];
}

// Neighbouring invocations load adjacent entries: along k, or along rows and columns.
fn load_tiles(row: u32, column: u32, k: u32, place: u32, thread: u32) {
    let by_k = vec2(thread % SIDE, thread / SIDE);
    let at_a = select(by_k, by_k.yx, TRANSPOSE_A);
    let at_b = select(by_k.yx, by_k, TRANSPOSE_B);
    var of_a = vec4<f32>();
    var of_b = vec4<f32>();
    for (var i = 0u; i < 4u; i++) {
        of_a[i] = load_a(row + 4u * at_a.y + i, k + at_a.x);
        of_b[i] = load_b(k + at_b.x, column + 4u * at_b.y + i);
    }
    a_tile[place + at_a.x * SIDE + at_a.y] = of_a;
    b_tile[place + at_b.x * SIDE + at_b.y] = of_b;
}

fn store(row: u32, column: u32, sums: vec4<f32>) {
    if row >= shape.rows { return; }
    for (var i = 0u; i < min(4u, shape.columns - min(column, shape.columns)); i++) {
        y[row * shape.columns + column + i] = sums[i];
    }
}

fn store_four(row: u32, column: u32, sums: array<vec4<f32>, 4>) {
    store(row, column, sums[0]);
    store(row + 1u, column, sums[1]);
    store(row + 2u, column, sums[2]);
    store(row + 3u, column, sums[3]);
}

fn add(of_a: vec4<f32>, of_b: vec4<f32>, sums: ptr<function, array<vec4<f32>, 4>>) {
    (*sums)[0] += of_a.x * of_b;
    (*sums)[1] += of_a.y * of_b;
    (*sums)[2] += of_a.z * of_b;
    (*sums)[3] += of_a.w * of_b;
}

@compute @workgroup_size(INVOCATIONS)
fn main(
    @builtin(workgroup_id) workgroup: vec3<u32>,
    @builtin(num_workgroups) workgroups: vec3<u32>,
    @builtin(local_invocation_index) thread: u32,
) {
    let side = select(64u, 128u, WIDE);
    let across = (shape.columns + side - 1u) / side;
    let tiles = across * ((shape.rows + side - 1u) / side);
    for (var tile = workgroup.x; tile < tiles; tile += workgroups.x) {
        let row = tile / across * side;
        let column = tile % across * side;
        var sums = array<vec4<f32>, 4>();
        var right = array<vec4<f32>, 4>();
        var below = array<vec4<f32>, 4>();
        var beyond = array<vec4<f32>, 4>();
        for (var k = 0u; k < shape.inner; k += SIDE) {
            load_tiles(row, column, k, 0u, thread);
            if WIDE { load_tiles(row + 64u, column + 64u, k, INVOCATIONS, thread); }
            workgroupBarrier();
            for (var depth = 0u; depth < SIDE; depth++) {
                let of_a = a_tile[depth * SIDE + thread / SIDE];
                let of_b = b_tile[depth * SIDE + thread % SIDE];
                add(of_a, of_b, &sums);
                if WIDE {
                    let of_below = a_tile[INVOCATIONS + depth * SIDE + thread / SIDE];
                    let of_right = b_tile[INVOCATIONS + depth * SIDE + thread % SIDE];
                    add(of_a, of_right, &right);
                    add(of_below, of_b, &below);
                    add(of_below, of_right, &beyond);
                }
            }
            workgroupBarrier();
        }
        let first = vec2(row + 4u * (thread / SIDE), column + 4u * (thread % SIDE));
        store_four(first.x, first.y, sums);
        if WIDE {
            store_four(first.x, first.y + 64u, right);
            store_four(first.x + 64u, first.y, below);
            store_four(first.x + 64u, first.y + 64u, beyond);
        }
    }
}
