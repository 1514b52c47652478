// The image of a job in a list: its target, and after training the last frame of its rollout.

import { open } from "./api.js";
import { h } from "./dom.js";
import { targetOf, thumbnail } from "./pixels.js";
import { isAgents } from "./progress.js";

const hasRollout = (job) => job.status === "done" && job.kind === "train" && job.saved_progress > 0 && !isAgents(job) && targetOf(job.config.task) !== null;

// {element, update(job)}
export function imageOf(job) {
    const element = h("span", { class: "image" }, thumbnail(job));
    let isFinal = false;
    function update(now) {
        if (isFinal || !hasRollout(now) || !("ImageDecoder" in window)) return;
        isFinal = true;
        lastFrame(now.id).then((canvas) => element.replaceChildren(canvas), () => {});
    }
    update(job);
    return { element, update };
}

async function lastFrame(id) {
    const { body } = await open(`/jobs/${id}/files/rollout.gif`);
    const decoder = new ImageDecoder({ data: body, type: "image/gif" });
    await decoder.completed;
    const { image } = await decoder.decode({ frameIndex: decoder.tracks.selectedTrack.frameCount - 1 });
    const canvas = h("canvas", { class: "thumbnail", width: image.displayWidth, height: image.displayHeight, "aria-hidden": "true" });
    canvas.getContext("2d").drawImage(image, 0, 0);
    image.close();
    return canvas;
}
