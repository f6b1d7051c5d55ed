// The candidate tree of one step as a picture: depth from left to right, what stood in color.

const kRow = 28, kGap = 34, kPad = 14, kMostLetters = 14;

function svg(name, attributes, parent) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  return parent ? parent.appendChild(element) : element;
}

/** A token with its spaces and line ends made visible. */
function shownToken(text) {
  const letters = [...text.replace(/\n/g, "↵").replace(/\t/g, "⇥").replace(/ /g, "·")];
  return letters.length > kMostLetters ? letters.slice(0, kMostLetters - 1).join("") + "…" : letters.join("");
}

/** Gives every node a place: x by depth, y by the order of the leaves, parents beside their first child. */
function layOut(step) {
  const nodes = step.nodes.map((node) => ({ ...node, label: shownToken(node.text), children: [] }));
  nodes.push({ label: shownToken(step.next), parent: step.last, kind: "own", next: true,
               depth: step.nodes[step.last].depth + 1, children: [] });
  nodes.forEach((node, i) => { if (node.parent >= 0) nodes[node.parent].children.push(i); });
  for (const node of nodes)  // the path that stood comes first, at the top
    node.children.sort((a, b) => rank(nodes[b]) - rank(nodes[a]));
  let row = 0;
  const place = (i) => {
    const node = nodes[i];
    if (node.children.length === 0) { node.y = row++; return; }
    node.children.forEach(place);
    node.y = nodes[node.children[0]].y;
  };
  place(0);
  const widths = [];
  for (const node of nodes) {
    node.width = [...node.label].length * 8 + 16;
    widths[node.depth] = Math.max(widths[node.depth] ?? 0, node.width);
  }
  const lefts = [kPad];
  for (let d = 1; d < widths.length; ++d) lefts[d] = lefts[d - 1] + widths[d - 1] + kGap;
  for (const node of nodes) node.x = lefts[node.depth];
  return { nodes, width: lefts.at(-1) + widths.at(-1) + kPad, height: row * kRow + 2 * kPad };
}
const rank = (node) => (node.accepted ? 2 : 0) + (node.next ? 1 : 0);

function drawTree(place, step) {
  place.replaceChildren();
  if (!step) {
    const text = document.createElement("p");
    text.className = "empty";
    text.textContent = "The tree of each step appears here: what was drafted, and what the model let stand.";
    place.append(text);
    return;
  }
  const { nodes, width, height } = layOut(step);
  const picture = svg("svg", { width, height, viewBox: `0 0 ${width} ${height}` });
  const middle = (node) => kPad + node.y * kRow + kRow / 2;
  const stands = (node) => node.accepted || node.next;
  for (const node of [...nodes].sort((a, b) => (stands(a) ? 1 : 0) - (stands(b) ? 1 : 0))) {  // what stood lies on top
    if (node.parent === -1) continue;
    const from = nodes[node.parent];
    const x1 = from.x + from.width, y1 = middle(from), x2 = node.x, y2 = middle(node);
    const bend = x2 - kGap / 2;
    svg("path", { class: `edge ${node.kind} ${stands(node) ? "on" : ""}`,
                  d: `M${x1} ${y1} H${bend - 8} C${bend} ${y1} ${bend - 4} ${y2} ${bend + 8} ${y2} H${x2}` }, picture);
  }
  nodes.forEach((node, i) => {
    const on = node.accepted || i === 0;
    const group = svg("g", { class: node.next ? "node next" : `node ${node.kind} ${on ? "on" : ""}` }, picture);
    svg("rect", { x: node.x, y: middle(node) - 11, width: node.width, height: 22, rx: 6 }, group);
    const text = svg("text", { x: node.x + 8, y: middle(node) }, group);
    text.textContent = node.label;
    const title = svg("title", {}, group);
    title.textContent = i === 0 ? "root: the last token of the step before"
      : node.next ? "the model's own token" : `${node.accepted ? "accepted" : "rejected"}, depth ${node.depth}`;
  });
  place.append(picture);
  const accepted = step.emitted.length - 1;
  place.setAttribute("aria-label",
    `Candidate tree of ${step.nodes.length} nodes; ${accepted} drafts accepted: ` +
    step.emitted.map((each) => each.text).join(""));
}
