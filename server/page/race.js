// The same answer twice: plain, then drafted. Each is timed alone; then both are replayed side by side.

const race = { timers: [], running: null };

async function timedAnswer(drafter, messages, more = {}) {
  const pieces = [];
  const start = performance.now();
  let tokens = 0;
  const body = settings({ messages, medusa: { steps: true, drafter }, ...more });
  for await (const chunk of chatCompletion(body, race.running.signal)) {
    const choice = chunk.choices[0];
    if (!choice) continue;
    const step = choice.medusa?.step ? readStep(choice.medusa.step) : null;
    tokens += step ? step.emitted.length : 0;
    if (choice.delta?.content) pieces.push({ at: performance.now() - start, text: choice.delta.content, step });
  }
  const text = pieces.map((piece) => piece.text).join("");
  return { pieces, tokens, text, seconds: (performance.now() - start) / 1000 };
}

function playLane(place, answer) {
  for (const piece of answer.pieces)
    race.timers.push(setTimeout(() => {
      const parts = piece.step && piece.step.emitted.map((each) => each.text).join("") === piece.text
        ? piece.step.emitted : [{ text: piece.text, kind: "own" }];
      for (const part of parts) {
        const span = document.createElement("span");
        if (part.kind !== "own") span.className = `tint ${part.kind}`;
        span.textContent = part.text;
        place.append(span);
      }
      place.scrollTop = place.scrollHeight;
    }, piece.at));
}

function stopRace() {
  race.running?.abort();
  race.timers.forEach(clearTimeout);
  race.timers = [];
}

async function runRace() {
  stopRace();
  race.running = new AbortController();
  const { signal } = race.running;
  const question = byId("prompt").value.trim() ||
    chat.messages.findLast((message) => message.role === "user")?.content || "What is gravity?";
  const messages = [{ role: "user", content: question }];
  const drafter = byId("drafter").value === "none"
    ? [...byId("drafter").options].map((option) => option.value).find((name) => name !== "none") : byId("drafter").value;
  byId("fast_name").textContent = drafter ?? "no drafter";
  for (const id of ["plain_text", "fast_text"]) byId(id).replaceChildren();
  for (const id of ["plain_speed", "fast_speed", "race_result"]) byId(id).textContent = "";
  const say = (text) => { byId("race_result").textContent = text; };
  try {
    if (!drafter) throw new Error("this server has loaded no drafter besides plain decoding");
    say("decoding without drafts …");
    await timedAnswer("none", messages, { max_tokens: 1 });  // from now on the prompt is as warm for one as for the other
    const plain = await timedAnswer("none", messages);
    say("decoding with drafts …");
    const fast = await timedAnswer(drafter, messages);
    const speed = (answer) => `${(answer.tokens / answer.seconds).toFixed(0)} tokens/s, ${answer.seconds.toFixed(2)} s`;
    byId("plain_speed").value = speed(plain);
    byId("fast_speed").value = speed(fast);
    say("");
    playLane(byId("plain_text"), plain);
    playLane(byId("fast_text"), fast);
    race.timers.push(setTimeout(() => say(
      `${(plain.seconds / fast.seconds).toFixed(2)} times plain decoding in this one race; ` +
      (plain.text === fast.text ? "the same text." : "the texts differ.")),
      1000 * Math.max(plain.seconds, fast.seconds)));
  } catch (error) {
    if (!signal.aborted) say(error.message);
  }
}

byId("race").addEventListener("click", () => { byId("race_view").showModal(); runRace(); });
byId("race_again").addEventListener("click", runRace);
byId("race_view").addEventListener("close", stopRace);

restore();
loadModel();
showStep(-1);
