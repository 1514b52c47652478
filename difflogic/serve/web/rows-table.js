// The evaluations of a run as a table, for those who do not see curves.

import { h, scroll } from "./dom.js";
import { count, loss } from "./format.js";

export function rowsTable() {
    const body = h("tbody", {});
    const head = ["Epoch", "Mixture off by", "Circuit off by", "Wrong in tests", "Undecided gates"].map((name) =>
        h("th", { scope: "col" }, name),
    );
    const element = h(
        "details",
        {},
        h("summary", {}, "The same as a table"),
        scroll("Evaluations", h("table", { class: "rows" }, h("thead", {}, h("tr", {}, head)), body)),
    );
    const at = (list) => new Map(list);
    function show(rows) {
        const best = rows.best;
        if (!element.open || !best) return;
        const [soft, batch, undecided] = [best.soft, best.batch, best.undecided].map(at);
        body.replaceChildren(
            ...best.hard.map(([epoch, wrong]) =>
                h(
                    "tr",
                    {},
                    [
                        count(epoch),
                        loss(soft.get(epoch)),
                        loss(batch.get(epoch)),
                        count(wrong),
                        count(undecided.get(epoch)),
                    ].map((text) => h("td", { class: "number" }, text)),
                ),
            ),
        );
    }
    let last = null;
    element.addEventListener("toggle", () => last && show(last));
    return {
        element,
        show(rows) {
            last = rows;
            show(rows);
        },
    };
}
