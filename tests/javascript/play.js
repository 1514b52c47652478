// Plays a recorded run with Dawn, on the first Vulkan driver, by the player of the page that trains.
//
// Reads {player, ...} from standard input: the text of player.js, and what `playedRun` in played.js takes. Writes what it
// finds.
import { readFileSync, writeSync } from "node:fs";
import vm from "node:vm";
import { create, globals } from "webgpu";

Object.assign(globalThis, globals);
// Where nothing refers to it, it is freed in use.
globalThis.gpu = create(["backend=vulkan"]);
Object.defineProperty(globalThis, "navigator", { value: { gpu } });
const data = JSON.parse(readFileSync(0, "utf8"));
const script = [data.player, readFileSync(new URL("played.js", import.meta.url), "utf8"), "({ openDevice, playedRun })"];
const { openDevice, playedRun } = vm.runInThisContext(script.join("\n"));
const device = await openDevice();
writeSync(1, `\n${JSON.stringify(await playedRun(device, data))}`);
device.handle.destroy();
