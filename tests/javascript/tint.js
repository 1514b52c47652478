// Compiles WGSL with Tint, as it is in Dawn and so in Chromium, on a device with WebGPU's default limits and no feature.
//
// Reads {modules: [{name, code}], pipelines: [{module, label, constants, bindings}]} from standard input. `bindings` are
// types of buffers in order; without them a pipeline has the layout that its shader asks for. Writes {pipelines, messages}:
// how many pipelines were made, and {module, label, type, line, column, text} for all that was said.
import { readFileSync, writeSync } from "node:fs";
import { create, globals } from "webgpu";

Object.assign(globalThis, globals);
// Dawn's null backend has the compiler and every check, but no driver. Where nothing refers to it, it is freed in use.
globalThis.gpu = create(["backend=null"]);
const asked = JSON.parse(readFileSync(0, "utf8"));
const device = await (await gpu.requestAdapter()).requestDevice();
const messages = [];

async function compiled({ name, code }) {
  device.pushErrorScope("validation"); // it would say once more what the messages say
  const module = device.createShaderModule({ label: name, code });
  await device.popErrorScope();
  const said = (await module.getCompilationInfo()).messages;
  for (const { type, lineNum, linePos, message } of said) {
    messages.push({ module: name, label: name, type, line: lineNum, column: linePos, text: message });
  }
  return said.some(({ type }) => type === "error") ? null : module;
}

function layoutOf(bindings) {
  if (!bindings) return "auto";
  const entries = bindings.map((type, binding) => ({ binding, visibility: GPUShaderStage.COMPUTE, buffer: { type } }));
  return device.createPipelineLayout({ bindGroupLayouts: [device.createBindGroupLayout({ entries })] });
}

async function isPipeline({ label, constants, bindings, module: name }, module) {
  device.pushErrorScope("validation");
  const compute = { module, entryPoint: "main", constants };
  device.createComputePipeline({ label, layout: layoutOf(bindings), compute });
  const error = await device.popErrorScope();
  if (error) {
    const [, line, column] = error.message.match(/:(\d+):(\d+) (?:error|warning)/) ?? [];
    messages.push({ module: name, label, type: "error", line: Number(line ?? 1), column: Number(column ?? 1), text: error.message });
  }
  return !error;
}

const modules = new Map();
for (const each of asked.modules) modules.set(each.name, await compiled(each));
let pipelines = 0;
for (const each of asked.pipelines) {
  if (!modules.has(each.module)) throw new Error(`no module ${each.module}`);
  const module = modules.get(each.module);
  if (module && (await isPipeline(each, module))) pipelines += 1;
}
writeSync(1, JSON.stringify({ pipelines, messages }));
device.destroy();
