// The conversation, the figures beside it, and the slider that replays its steps.

const chat = { messages: [], steps: [], spans: [], running: null, playing: 0, shown: -1, started: 0, ended: 0 };

function settings(more) {
  return {
    temperature: Number(byId("temperature").value), max_tokens: Math.max(1, Number(byId("max_tokens").value)),
    seed: Math.max(0, Math.floor(Number(byId("seed").value))), stream: true,
    medusa: { steps: true, drafter: byId("drafter").value }, ...more,
  };
}

function addMessage(role, text) {
  byId("welcome")?.remove();
  const element = document.createElement("div");
  element.className = `message ${role}`;
  element.textContent = text;
  byId("messages").append(element);
  element.scrollIntoView({ block: "end" });
  return element;
}

/** Adds a piece of the answer, its tokens colored where they make up the piece. */
function addPiece(element, text, step, index) {
  const pieces = step && step.emitted.map((each) => each.text).join("") === text
    ? step.emitted : [{ text, kind: "own" }];
  for (const piece of pieces) {
    const span = document.createElement("span");
    span.className = piece.kind === "own" ? "token" : `token tint ${piece.kind}`;
    span.textContent = piece.text;
    if (step) { span.dataset.step = index; (chat.spans[index] ??= []).push(span); }
    element.append(span);
  }
}

async function send(text) {
  const question = addMessage("user", text);
  const messages = chat.messages;  // a new chat has others
  messages.push({ role: "user", content: text });
  const element = addMessage("assistant", "");
  Object.assign(chat, { steps: [], spans: [], shown: -1, started: performance.now(), running: new AbortController() });
  stopReplay();
  byId("send").textContent = "Stop";
  let answer = "";
  try {
    for await (const chunk of chatCompletion(settings({ messages }), chat.running.signal)) {
      const choice = chunk.choices[0];
      if (!choice) continue;
      const step = choice.medusa?.step ? readStep(choice.medusa.step) : null;
      if (step) chat.steps.push(step);
      const piece = choice.delta?.content ?? "";
      if (!piece && !step) continue;
      answer += piece;
      const log = byId("messages");
      const atEnd = log.scrollHeight - log.scrollTop - log.clientHeight < 80;
      if (piece) addPiece(element, piece, step, chat.steps.length - 1);
      if (atEnd) log.scrollTop = log.scrollHeight;
      chat.ended = performance.now();
      if (step) showStep(chat.steps.length - 1);
    }
  } catch (error) {
    if (error.name !== "AbortError") addMessage("error", error.message);
  }
  if (answer) {
    messages.push({ role: "assistant", content: answer });
  } else {  // what the next question does not know of is marked, and may be asked again
    messages.pop();  // two questions in a row are none of most templates
    element.remove();
    question.classList.add("error");
    if (messages === chat.messages && !byId("prompt").value) byId("prompt").value = text;
  }
  chat.running = null;
  byId("send").textContent = "Send";
  byId("play").disabled = chat.steps.length === 0;
  save();
  byId("prompt").focus();
}

function showStep(index) {
  const step = chat.steps[index];
  for (const span of chat.spans[chat.shown] ?? []) span.classList.remove("shown");
  chat.shown = index;
  if (!chat.running) for (const span of chat.spans[index] ?? []) span.classList.add("shown");
  const slider = byId("step");
  slider.max = Math.max(0, chat.steps.length - 1);
  slider.value = Math.max(0, index);
  slider.disabled = chat.steps.length === 0;
  drawTree(byId("tree"), step);
  if (step) byId("step_text").value =
    `step ${index + 1} of ${chat.steps.length}: ${step.nodes.length - 1} drafts, ${step.emitted.length - 1} accepted, ` +
    `${step.emitted.length} ${step.emitted.length === 1 ? "token" : "tokens"} emitted`;
  else byId("step_text").value = "no step yet";
  showFigures();
}

function showFigures() {
  const steps = chat.steps;
  const tokens = steps.reduce((sum, step) => sum + step.emitted.length, 0);
  byId("per_step").textContent = steps.length ? (tokens / steps.length).toFixed(2) : "–";
  const seconds = (chat.ended - chat.started) / 1000;
  byId("per_second").textContent = steps.length && seconds > 0 ? (tokens / seconds).toFixed(0) : "–";
  const counts = { heads: 0, lookup: 0, other: 0 };
  for (const step of steps) for (const each of step.emitted) if (each.kind !== "own") ++counts[each.kind];
  byId("share").textContent = Object.entries(counts).filter(([, n]) => n > 0)
    .map(([kind, n]) => `${kind} ${Math.round(100 * n / tokens)} %`).join(", ") || "–";
  const deepest = Math.max(0, ...steps.map((step) => step.emitted.length - 1));
  byId("depths").replaceChildren(...Array.from({ length: Math.min(deepest, 8) }, (_, i) => {
    const share = steps.filter((step) => step.emitted.length > i + 1).length / steps.length;
    const row = document.createElement("div"), label = document.createElement("span");
    const bar = document.createElement("span"), fill = document.createElement("i"), value = document.createElement("span");
    label.textContent = `${i + 1} or more accepted`;
    bar.className = "bar";
    fill.style.width = `${100 * share}%`;
    bar.append(fill);
    value.textContent = `${Math.round(100 * share)} %`;
    row.append(label, bar, value);
    return row;
  }));
}

function stopReplay() {
  clearInterval(chat.playing);
  chat.playing = 0;
  byId("play").textContent = "Replay";
}
function replay() {
  if (chat.playing) return stopReplay();
  let index = 0;
  byId("play").textContent = "Pause";
  showStep(0);
  chat.playing = setInterval(() => (++index < chat.steps.length ? showStep(index) : stopReplay()), 250);
}
function move(by) {
  stopReplay();
  if (chat.steps.length) showStep(Math.min(chat.steps.length - 1, Math.max(0, chat.shown + by)));
}

function save() { sessionStorage.setItem("messages", JSON.stringify(chat.messages)); }
function restore() {
  try { chat.messages = JSON.parse(sessionStorage.getItem("messages")) ?? []; } catch { chat.messages = []; }
  for (const message of chat.messages) addMessage(message.role, message.content);
}

async function loadModel() {
  try {
    const response = await fetch("v1/models", { headers: authorization() });
    if (response.status === 401) {
      if (forgetKey()) return loadModel();
      throw new ServerError("it wants a key");
    }
    const model = (await response.json()).data[0];
    byId("model").textContent = `${model.id}, context ${model.max_model_len}, ${model.medusa.sequences} at the same time`;
    document.title = `${model.id} – medusa`;
    byId("max_tokens").max = model.max_model_len;
    if (!model.medusa.chat) {
      addMessage("error", "This model has no chat template, so it cannot chat here. /v1/completions continues texts; " +
        "serve … --set backbone.chat_template=NAME chooses a template.");
      for (const id of ["prompt", "send", "race"]) byId(id).disabled = true;
    }
    byId("drafter").replaceChildren(...model.medusa.drafters.map((name) => {
      const option = new Option(name, name, name === model.medusa.drafter, name === model.medusa.drafter);
      return option;
    }));
  } catch (error) {
    byId("model").textContent = `the server does not answer (${error.message})`;
  }
}

byId("composer").addEventListener("submit", (event) => {
  event.preventDefault();
  if (chat.running) return chat.running.abort();
  const text = byId("prompt").value.trim();
  if (!text) return;
  byId("prompt").value = "";
  send(text);
});
byId("prompt").addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
  event.preventDefault();
  if (!chat.running) byId("composer").requestSubmit();
});
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape" && chat.running && !byId("race_view").open) chat.running.abort();
});
byId("messages").addEventListener("click", (event) => {
  const index = event.target.dataset?.step;
  if (index !== undefined && chat.spans[index]?.includes(event.target)) { stopReplay(); showStep(Number(index)); }
});
byId("step").addEventListener("input", (event) => { stopReplay(); showStep(Number(event.target.value)); });
byId("back").addEventListener("click", () => move(-1));
byId("forth").addEventListener("click", () => move(1));
byId("play").addEventListener("click", replay);
byId("tree").addEventListener("keydown", (event) => {
  if (event.key === "ArrowLeft" || event.key === "ArrowRight") { event.preventDefault(); move(event.key === "ArrowLeft" ? -1 : 1); }
});
byId("clear").addEventListener("click", () => {
  chat.running?.abort();
  stopReplay();
  Object.assign(chat, { messages: [], steps: [], spans: [], shown: -1, started: 0, ended: 0 });
  byId("messages").replaceChildren();
  byId("play").disabled = true;
  save();
  showStep(-1);
  byId("prompt").focus();
});
