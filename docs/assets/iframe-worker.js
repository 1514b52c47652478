// A page that was opened as a file may not begin a worker, in which the search of the site runs. There a hidden frame
// takes its place: the worker's script sees the frame's window as its own, and the two exchange events instead.
if (location.protocol === "file:") {
    window.Worker = class extends EventTarget {
        constructor(address) {
            super();
            this.frame = document.createElement("iframe");
            this.frame.hidden = true;
            document.body.append(this.frame);
            const inside = this.frame.contentWindow;
            const load = (source) =>
                new Promise((resolve, reject) => {
                    const script = inside.document.createElement("script");
                    Object.assign(script, { src: source, onload: resolve, onerror: reject });
                    inside.document.body.append(script);
                });
            inside.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
            inside.importScripts = async (...sources) => {
                for (const source of sources) await load(source);
            };
            this.ready = load(address);
        }

        async postMessage(data) {
            await this.ready;
            this.frame.contentWindow.dispatchEvent(new MessageEvent("message", { data: structuredClone(data) }));
        }

        terminate() {
            this.frame.remove();
        }
    };
}
