"use strict";
// Asks the server, and reads its server-sent events.

const byId = (id) => document.getElementById(id);

class ServerError extends Error {}

/** Yields the chunks of a chat completion as they arrive. */
async function* chatCompletion(body, signal) {
  const response = await fetch("v1/chat/completions", {
    method: "POST", signal, body: JSON.stringify(body),
    headers: { "Content-Type": "application/json", ...authorization() },
  });
  if (!response.ok) {
    const answer = await response.json().catch(() => null);
    if (response.status === 401) forgetKey();
    throw new ServerError(answer?.error?.message ?? `HTTP ${response.status}`);
  }
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let buffer = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) throw new ServerError("the connection ended before the answer did");
    buffer += value;
    for (let end; (end = buffer.indexOf("\n\n")) >= 0; buffer = buffer.slice(end + 2)) {
      const event = buffer.slice(0, end);
      if (!event.startsWith("data: ")) continue;
      if (event === "data: [DONE]") return;
      const chunk = JSON.parse(event.slice(6));
      if (chunk.error) throw new ServerError(chunk.error.message);
      yield chunk;
    }
  }
}

/** What a server with keys wants to see; asked for once a tab. */
function authorization() {
  const key = sessionStorage.getItem("key");
  return key ? { Authorization: `Bearer ${key}` } : {};
}
function forgetKey() {
  const key = window.prompt("This server wants a key:");
  if (key) sessionStorage.setItem("key", key); else sessionStorage.removeItem("key");
  return Boolean(key);
}

/** A step as the pictures want it: nodes with depth and drafter, and the tokens that it emitted. */
function readStep(step) {
  const nodes = step.tokens.map((text, i) => ({
    text, parent: step.parents[i], kind: kindOf(step.drafters[i]), accepted: false, depth: 0,
  }));
  for (const node of nodes) if (node.parent >= 0) node.depth = nodes[node.parent].depth + 1;
  for (const i of step.accepted) nodes[i].accepted = true;
  const emitted = step.accepted.map((i) => ({ text: nodes[i].text, kind: nodes[i].kind }));
  emitted.push({ text: step.next, kind: "own" });
  return { nodes, last: step.accepted.at(-1) ?? 0, next: step.next, emitted };
}

/** One color per meaning: the model itself, heads, lookup, everything else. */
function kindOf(drafter) {
  if (drafter === "none") return "own";
  if (drafter === "medusa") return "heads";
  return ["prompt_lookup", "retrieval", "shared"].includes(drafter) ? "lookup" : "other";
}
