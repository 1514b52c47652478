// Writes WGSL as Metal, HLSL and SPIR-V, with naga as wasm.
//
// Reads [{name, code}] from standard input. Writes [{name, spirv, errors}]: SPIR-V in base64, and one message for each
// language that it could not be written in.
import { readFileSync, writeFileSync } from "node:fs";

const PACKAGE = new URL("./node_modules/wgsl-wasm-transpiler-bundler/", import.meta.url);

// The package is made for bundlers, which import wasm as a module. Node cannot in every version.
const naga = await import(new URL("wgsl_wasm_transpiler_bg.js", PACKAGE));
const wasm = readFileSync(new URL("wgsl_wasm_transpiler_bg.wasm", PACKAGE));
const { instance } = await WebAssembly.instantiate(wasm, { "./wgsl_wasm_transpiler_bg.js": naga });
naga.__wbg_set_wasm(instance.exports);
instance.exports.__wbindgen_start();

function written({ name, code }) {
  const texts = {};
  const errors = {};
  for (const language of ["metal", "hlsl", "spirv"]) {
    try {
      texts[language] = naga.compileShader(code, language);
      if (!texts[language]) errors[language] = "nothing was written";
    } catch (error) {
      errors[language] = String(error);
    }
  }
  return { name, spirv: texts.spirv ?? "", errors };
}

writeFileSync(1, JSON.stringify(JSON.parse(readFileSync(0, "utf8")).map(written)));
