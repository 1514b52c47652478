// The page begins here: sign in, then one view for each address behind the #.

import { alertsFor } from "./alerts.js";
import { currentSession, signIn, signOut, UNREACHABLE, whenSignedOut } from "./api.js";
import { compareView } from "./compare-view.js";
import { devicesView } from "./devices.js";
import { h } from "./dom.js";
import { jobView } from "./job-view.js";
import { jobsView } from "./jobs-view.js";
import { announce, patiently, showConnection } from "./notices.js";
import { signInView } from "./session.js";
import { submitView } from "./submit-view.js";

const ROUTES = [
    [/^\/?$/, jobsView],
    [/^\/new$/, submitView],
    [/^\/devices$/, devicesView],
    [/^\/compare\/([a-z2-7,]*)$/, compareView],
    [/^\/jobs\/([a-z2-7]{16})$/, jobView],
];

const LINK = "#token="; // as `difflogic serve` prints it

const main = document.getElementById("main");
let stop = new AbortController();
let signedIn = false;

// A view is `view(root, signal, argument, query)`: it fills the root, and ends with the signal.
function show(view, ...rest) {
    stop.abort();
    stop = new AbortController();
    showConnection("none");
    main.replaceChildren();
    view(main, stop.signal, ...rest);
    const title = main.querySelector("h1");
    document.title = title ? `${title.textContent} · difflogic` : "difflogic";
}

function route(moved) {
    const [path, query] = location.hash.replace(/^#/, "").split("?");
    if (!signedIn) return show(signInView, enter);
    const [match, view] = ROUTES.map(([pattern, view]) => [path.match(pattern), view]).find(([match]) => match) ?? [[], nowhere];
    show(view, match[1], new URLSearchParams(query));
    for (const link of document.querySelectorAll("#navigation a")) {
        const here = link.getAttribute("href").replace(/^#/, "") === (path || "/");
        link.ariaCurrent = here ? "page" : null;
    }
    if (!moved) return;
    scrollTo(0, 0);
    main.focus({ preventScroll: true });
    announce(document.title);
}

function nowhere(root) {
    root.append(h("h1", {}, "Page not found"), h("p", {}, "There is no page at this address: ", h("a", { href: "#/" }, "go to the jobs"), "."));
}

function enter(session) {
    signedIn = Boolean(session);
    for (const id of ["navigation", "leave"]) document.getElementById(id).hidden = !signedIn;
    alertsFor(session);
    route(false);
}

document.querySelector(".skip").addEventListener("click", (event) => {
    event.preventDefault(); // the address behind the # is the view's
    main.focus();
});
document.getElementById("leave").addEventListener("click", async () => {
    try {
        await signOut();
        enter(null);
    } catch (error) {
        if (error.status !== UNREACHABLE) throw error;
        showConnection("waiting", error.message);
    }
});
addEventListener("hashchange", () => (location.hash.startsWith(LINK) ? location.reload() : route(true)));
whenSignedOut(() => signedIn && enter(null));

function notNow(error) {
    main.replaceChildren(
        h("h1", {}, "The server does not respond"),
        h("p", { class: "error", role: "alert" }, error.message),
        h("button", { type: "button", onclick: () => location.reload() }, "Try again"),
    );
}

// The token of a link leaves the address, and is exchanged for a session.
const token = location.hash.startsWith(LINK) && location.hash.slice(LINK.length);
if (token) history.replaceState(null, "", "#/");
try {
    enter(await patiently(() => (token ? signIn(token) : currentSession()), notNow, new AbortController().signal));
} catch (error) {
    notNow(error);
}
