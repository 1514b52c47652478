// The REST interface under /api/v1: every failure is an ApiError with the server's own sentence.

const BASE = new URL("../api/v1", import.meta.url).pathname; // next to this folder, also behind a proxy's prefix
const NO_ANSWER = "The server cannot be reached: is `difflogic serve` running?";

export const UNREACHABLE = 0; // status of an ApiError without an answer

export class ApiError extends Error {
    constructor(status, code, message) {
        super(message);
        Object.assign(this, { status, code });
    }
}

let caller = null;
let onSignedOut = () => {};

// The session of the signed-in user: {owner, roles, csrf}.
export const session = () => caller;

// Whether the signed-in user sees the jobs of all owners.
export const isOperator = () => Boolean(caller?.roles.includes("operator"));

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
    await send("POST", "/session", { json: { token } }, false);
    return currentSession();
}

export const signOut = () => send("DELETE", "/session", {}, false);

export const get = (path, options = {}) => send("GET", path, options);
export const post = (path, json = {}, options = {}) => send("POST", path, { json, ...options });
export const postForm = (path, form, options = {}) => send("POST", path, { form, ...options });
export const patch = (path, json) => send("PATCH", path, { json });
export const remove = (path) => send("DELETE", path);

// A streamed answer, for server-sent events.
export async function open(path, headers, signal) {
    const response = await reach(path, { headers, signal });
    if (!response.ok) throw await failure(response);
    return response;
}

async function send(method, path, { json, form, headers = {}, signal } = {}, watched = true) {
    const request = { method, signal, headers: { Accept: "application/json", ...headers } };
    if (method !== "GET" && caller?.csrf) request.headers["X-CSRF-Token"] = caller.csrf;
    if (json !== undefined) {
        request.headers["Content-Type"] = "application/json";
        request.body = JSON.stringify(json);
    } else if (form !== undefined) request.body = form;
    const response = await reach(path, request);
    if (!response.ok) throw await failure(response, watched);
    return response.status === 204 ? null : response.json();
}

async function reach(path, request) {
    try {
        return await fetch(BASE + path, { credentials: "same-origin", cache: "no-store", ...request });
    } catch (error) {
        if (request.signal?.aborted) throw error;
        throw new ApiError(UNREACHABLE, "unreachable", NO_ANSWER);
    }
}

async function failure(response, watched = true) {
    const body = await response.json().catch(() => null); // a proxy's own page is no JSON: its status must do
    const { code, message } = body?.error ?? {};
    if (response.status === 401 && watched) onSignedOut();
    return new ApiError(response.status, code ?? "unexpected", message ?? `The server answered ${response.status} ${response.statusText}.`);
}
