// The REST interface under /api/v1: every failure is an ApiError with the server's own sentence.

const BASE = new URL("../api/v1", import.meta.url).pathname; // next to this folder, also behind a proxy's prefix
const NO_ANSWER = "The server cannot be reached: is `difflogic serve` running?";

export const UNREACHABLE = 0; // status of an ApiError without an answer

class ApiError extends Error {
    constructor(status, message) {
        super(message);
        this.status = status;
    }
}

let caller = null;
let onSignedOut = () => {};

// The session of the signed-in user: {owner, roles, csrf}.
export const session = () => caller;

export const address = (path) => BASE + path;

// Sets the function to call when the server rejects the session.
export function whenSignedOut(call) {
    onSignedOut = call;
}

// The session, or null if there is none.
export async function currentSession() {
    try {
        caller = await send("GET", "/session", {}, false);
        return caller;
    } catch (error) {
        if (error.status === 401) return null;
        throw error;
    }
}

export async function signIn(token) {
    await send("POST", "/session", { body: { token } }, false);
    return currentSession();
}

export const signOut = () => send("DELETE", "/session", {}, false);

export const get = (path, options = {}) => send("GET", path, options);
export const post = (path, body = {}, options = {}) => send("POST", path, { body, ...options });
export const patch = (path, body) => send("PATCH", path, { body });
export const remove = (path) => send("DELETE", path);

// `body` is a form with files, or sent as JSON.
async function send(method, path, { body, headers = {}, signal } = {}, watched = true) {
    const request = { method, body, signal, headers: { Accept: "application/json", ...headers } };
    if (method !== "GET" && caller?.csrf) request.headers["X-CSRF-Token"] = caller.csrf;
    if (body && !(body instanceof FormData)) {
        request.headers["Content-Type"] = "application/json";
        request.body = JSON.stringify(body);
    }
    const response = await open(path, request, watched);
    return response.status === 204 ? null : response.json();
}

// A response to be read by the caller, such as a file or a stream of events.
export async function open(path, request = {}, watched = true) {
    const response = await fetch(BASE + path, { credentials: "same-origin", cache: "no-store", ...request }).catch((error) => {
        throw request.signal?.aborted ? error : new ApiError(UNREACHABLE, NO_ANSWER);
    });
    if (response.ok) return response;
    const answer = await response.json().catch(() => null); // a proxy's own page is no JSON: its status must do
    if (response.status === 401 && watched) onSignedOut();
    throw new ApiError(response.status, answer?.error?.message ?? `The server responded with ${response.status} ${response.statusText}.`);
}
