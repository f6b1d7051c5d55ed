#include "tools/report/html.h"

namespace medusa {

std::string_view style_sheet() {
  return R"css(:root {
  --page: #f4f4f1; --card: #ffffff; --ink: #1c1d20; --soft: #5c6067; --rule: #e2e2dd; --grid: #ebebe7;
  --shade: #0b5c9e; --on-shade: #ffffff;
  --c0: #0072b2; --c1: #d55e00; --c2: #00866a; --c3: #b4558f; --c4: #b07a00; --c5: #3a9bd6; --c6: #6a4c93; --c7: #6b6f76;
  --c8: #8c2d04; --c9: #5b7f00; --c10: #007c91; --c11: #2f2f2f;
}
@media screen and (prefers-color-scheme: dark) {
  :root {
    --page: #121316; --card: #1b1d21; --ink: #e9e9ec; --soft: #a0a4ac; --rule: #33363c; --grid: #2a2d32;
    --shade: #6cb8ee; --on-shade: #10161c;
    --c0: #5ab4ec; --c1: #ff8b4d; --c2: #2fc79c; --c3: #e79ac9; --c4: #f0b73a; --c5: #a5d8ff; --c6: #b9a0e6; --c7: #a9adb5;
    --c8: #ff9d80; --c9: #b8de5a; --c10: #63d8ec; --c11: #e8e8e8;
  }
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--ink);
  font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", "Noto Sans", "DejaVu Sans", sans-serif; }
main { max-width: 1116px; margin: 0 auto; padding: 28px 20px 48px; }
h1 { font-size: 27px; line-height: 1.2; margin: 0 0 4px; }
h2 { font-size: 19px; line-height: 1.3; margin: 0 0 10px; }
h3 { font-size: 15px; line-height: 1.3; margin: 0 0 8px; }
.pair + h3, .pair + figure { margin-top: 26px; }
figure + details { margin-top: 14px; }
p { margin: 0 0 12px; max-width: 96ch; }
.note, figcaption, .legend { color: var(--soft); font-size: 13px; }
.absent { color: var(--soft); font-style: italic; }
header { margin: 0 4px 20px; }
section { background: var(--card); border: 1px solid var(--rule); border-radius: 12px; padding: 22px 26px; margin: 0 0 20px; }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(178px, 1fr)); gap: 12px; margin: 0 0 20px; }
.tile { background: var(--card); border: 1px solid var(--rule); border-radius: 12px; padding: 14px 16px; display: flex; flex-direction: column; }
.tile b { font-size: 29px; line-height: 1.2; font-weight: 650; white-space: nowrap; }
.tile:first-child b { color: var(--c0); }
.tile small { font-size: 14px; font-weight: 500; color: var(--soft); margin-left: 6px; }
.tile span { font-size: 14px; }
.tile em { font-size: 12.5px; font-style: normal; color: var(--soft); }
.pair { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 450px), 1fr)); gap: 26px 36px; margin-top: 22px; }
figure { margin: 0; min-width: 0; }
figcaption { margin-top: 8px; max-width: 96ch; }
.wide { overflow-x: auto; }
.narrow { display: none; }
svg { display: block; max-width: 100%; height: auto; overflow: visible; }
.scroll { overflow-x: auto; margin: 0 0 12px; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: 7px 14px 7px 0; text-align: right; border-bottom: 1px solid var(--rule); white-space: nowrap; }
thead th { color: var(--soft); font-weight: 500; font-size: 13px; vertical-align: bottom; white-space: normal; }
th:first-child { text-align: left; padding-right: 28px; }
tbody th { font-weight: 550; }
td:last-child, th:last-child { padding-right: 2px; }
#comparison table, .full table { width: 100%; }
details { border-top: 1px solid var(--rule); padding: 9px 0; }
summary { cursor: pointer; font-weight: 550; }
details > :not(summary) { margin-top: 10px; }
pre { margin: 0; padding: 12px 14px; background: var(--page); border-radius: 8px; overflow-x: auto; font: 12.5px/1.5 ui-monospace, "SF Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace; }
.answer { white-space: pre-wrap; overflow-wrap: anywhere; font-size: 14px; line-height: 1.75; }
.run { border-radius: 4px; padding: 1px 0; box-decoration-break: clone; -webkit-box-decoration-break: clone; }
.answer .r2, .answer .r3, .answer .r4, .answer .r5 { border-left: 2px solid var(--card); }
.legend .run { padding: 1px 7px; color: var(--ink); }
.r2 { background: color-mix(in srgb, var(--c0) 16%, var(--card)); }
.r3 { background: color-mix(in srgb, var(--c0) 30%, var(--card)); }
.r4 { background: color-mix(in srgb, var(--c0) 44%, var(--card)); }
.r5 { background: color-mix(in srgb, var(--c0) 58%, var(--card)); }
nav { display: flex; flex-wrap: wrap; gap: 2px 16px; font-size: 13px; }
a { color: var(--c0); }
.legend { display: flex; flex-wrap: wrap; gap: 2px 16px; margin: 0 0 8px; }
.key { display: inline-block; width: 11px; height: 11px; border-radius: 3px; margin-right: 6px; background: currentColor; }
.c0 { color: var(--c0); } .c1 { color: var(--c1); } .c2 { color: var(--c2); } .c3 { color: var(--c3); }
.c4 { color: var(--c4); } .c5 { color: var(--c5); } .c6 { color: var(--c6); } .c7 { color: var(--c7); }
.c8 { color: var(--c8); } .c9 { color: var(--c9); } .c10 { color: var(--c10); } .c11 { color: var(--c11); }
svg text { font-family: inherit; font-size: 12px; fill: var(--ink); }
svg .tick { fill: var(--soft); }
svg .label { fill: var(--soft); font-size: 12.5px; }
svg .name, svg .value { font-weight: 550; }
svg .name[class*=" c"] { fill: currentColor; }
svg .strong { font-size: 13px; font-weight: 650; paint-order: stroke; stroke: var(--card); stroke-width: 4px; }
svg .middle { text-anchor: middle; }
svg .end { text-anchor: end; }
svg .axis { stroke: var(--soft); stroke-width: 1; }
svg .grid { stroke: var(--grid); stroke-width: 1; }
svg .level { stroke: var(--rule); stroke-width: 1; stroke-dasharray: 2 4; }
svg .guide { stroke: var(--soft); stroke-width: 1; stroke-dasharray: 4 4; }
svg .curve { fill: none; stroke: currentColor; stroke-width: 2; stroke-linejoin: round; stroke-linecap: round; }
svg .faint { stroke-opacity: 0.3; stroke-width: 1.5; }
svg .dot { fill: var(--card); stroke: currentColor; stroke-width: 2; }
svg .chosen { fill: var(--card); stroke: var(--ink); stroke-width: 3; }
svg .bar { fill: currentColor; }
svg .part { fill: currentColor; font-size: 11px; font-weight: 600; }
svg .edge { fill: none; stroke: var(--shade); stroke-opacity: 0.32; stroke-linecap: round; }
svg .node-back { fill: var(--card); }
svg .node { fill: var(--shade); stroke: var(--shade); stroke-width: 1; }
svg .node-root { fill: var(--ink); }
svg .share { fill: var(--soft); font-size: 11px; }
svg .rank { font-weight: 600; pointer-events: none; }
svg .rank.dark { fill: var(--on-shade); }
@media (max-width: 600px) {
  main { padding: 18px 10px 32px; }
  section { padding: 16px 15px; }
  .tiles { grid-template-columns: 1fr 1fr; gap: 8px; }
  .tile { padding: 11px 12px; }
  .tile:last-child:nth-child(odd) { grid-column: span 2; }
  .tile b { font-size: 23px; }
  th, td { padding-right: 9px; font-size: 13px; }
  thead th { font-size: 12px; }
  th:first-child { padding-right: 12px; }
  .wide { display: none; }
  .narrow { display: block; }
}
@media print {
  body { background: none; font-size: 13px; }
  main { max-width: none; padding: 0; }
  section { border: 0; border-top: 1px solid #ccc; border-radius: 0; padding: 12px 0 0; }
  .tiles { grid-template-columns: repeat(5, 1fr); gap: 6px; }
  .tile { border-color: #ccc; padding: 8px 9px; }
  .tile b { font-size: 20px; }
  .tile span, .tile small, .tile em { font-size: 11.5px; }
  .pair { grid-template-columns: 1fr 1fr; gap: 16px 20px; margin-top: 14px; }
  .pair .wide { display: none; }
  .pair .narrow { display: block; }
  h2, h3 { break-after: avoid; }
  figure, tr, .tile { break-inside: avoid; }
  svg *, .key, .run { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
  pre { white-space: pre-wrap; }
}
)css";
}

}  // namespace medusa
