import type { PassAppearance } from '#passes/pass-content.js';
import { pickReadableColor } from '#pages/colors.js';

type Colors = Pick<PassAppearance, 'cardColor' | 'textColor'>;

/** Renders the style of a page. Colours are validated when a card is written, so nothing else can be injected here. */
export function renderCardStyle({ cardColor, textColor }: Colors): string {
  return `:root{--card:${cardColor};--on-card:${pickReadableColor(cardColor, textColor)}}${STYLE}`;
}

/** Returns the style of pages that show no card. */
export function getPlainStyle(): string {
  return STYLE;
}

const STYLE = `
:root{color-scheme:light dark;--page:#f3f1ee;--ink:#1f1c1a;--soft:#625c56;--panel:#fff;--line:#e0dbd4;--good:#17683a;--good-ground:#e0f2e6}
@media (prefers-color-scheme:dark){:root{--page:#141312;--ink:#f3f0ec;--soft:#b5aea6;--panel:#211f1d;--line:#3b3733;--good:#8fdcab;--good-ground:#17352350}}
*,::before,::after{box-sizing:border-box}
html{-webkit-text-size-adjust:100%}
body{margin:0;padding:max(1rem,env(safe-area-inset-top)) 1rem max(1.5rem,env(safe-area-inset-bottom));background:var(--page);color:var(--ink);font:1rem/1.45 system-ui,-apple-system,"Segoe UI",Roboto,sans-serif}
h1,h2,h3,p,ul,dl,dd,figure{margin:0;padding:0}
ul{list-style:none}
[hidden]{display:none!important}
:focus-visible{outline:3px solid var(--ink);outline-offset:3px;border-radius:.5rem}
.page{max-width:27rem;margin:0 auto;display:grid;gap:1.25rem}
.details{display:grid;gap:1.25rem;align-content:start}
.card{background:var(--card);color:var(--on-card);border-radius:1.25rem;overflow:hidden;box-shadow:0 1px 2px #0003,0 12px 32px -8px #0004;overflow-wrap:anywhere}
.top{display:flex;justify-content:space-between;align-items:flex-start;gap:1rem;padding:1.1rem 1.25rem .9rem}
.top p{font-size:.9rem}
h1{font-size:1.45rem;line-height:1.2;font-weight:700;letter-spacing:-.01em}
.count{text-align:right;flex:none}
.label{display:block;font-size:.75rem;line-height:1.3;font-weight:500}
.count strong{font-size:1.45rem;line-height:1.2;font-weight:700;font-variant-numeric:tabular-nums;white-space:nowrap}
.strip{display:block;width:100%;height:auto;aspect-ratio:375/144}
.fields{display:grid;grid-template-columns:repeat(auto-fit,minmax(8.5rem,1fr));gap:.75rem 1.25rem;padding:1rem 1.25rem 0}
.fields dd{font-size:1.05rem;font-weight:600;line-height:1.3}
figure{margin:1.1rem 1.25rem 1.25rem;padding:.9rem;border-radius:.9rem;background:#fff;color:#1f1c1a;text-align:center}
.qr{display:block;width:min(100%,14.5rem);margin:-.7rem auto -.5rem}
figcaption{font-size:.85rem;line-height:1.4}
.code{display:block;font:600 1.15rem/1.5 ui-monospace,"SF Mono",Menlo,Consolas,monospace;letter-spacing:.16em}
.ended .card{filter:grayscale(1)}
.ended .strip{opacity:.6}
.panel{background:var(--panel);border:1px solid var(--line);border-radius:1rem;padding:1rem 1.25rem 1.1rem}
.panel h2{font-size:1.05rem;line-height:1.3;margin-bottom:.35rem}
.panel li+li{border-top:1px solid var(--line)}
.panel li{padding:.75rem 0}
.panel li:last-child{padding-bottom:0}
.reward{display:flex;justify-content:space-between;align-items:baseline;gap:.25rem 1rem;flex-wrap:wrap}
.reward h3{font-size:1rem;font-weight:600;overflow-wrap:anywhere}
.state{font-size:.85rem;color:var(--soft);font-variant-numeric:tabular-nums}
.ready{color:var(--good);background:var(--good-ground);border-radius:1rem;padding:.05rem .6rem;font-weight:600}
.about{font-size:.9rem;color:var(--soft);overflow-wrap:anywhere}
progress{appearance:none;display:block;width:100%;height:.5rem;margin-top:.5rem;border:0;border-radius:1rem;overflow:hidden;background:var(--line);color:var(--ink)}
progress::-webkit-progress-bar{background:var(--line)}
progress::-webkit-progress-value{background:var(--ink);border-radius:1rem}
progress::-moz-progress-bar{background:var(--ink);border-radius:1rem}
.notice{border-left:.35rem solid var(--ink);font-weight:500}
.offline{position:sticky;top:.5rem;z-index:1}
.buttons{display:grid;gap:.6rem}
.button{display:block;width:100%;min-height:3rem;padding:.7rem 1rem;border:1px solid var(--ink);border-radius:.8rem;background:var(--ink);color:var(--page);font:inherit;font-weight:600;text-align:center;text-decoration:none;cursor:pointer}
.button.quiet{background:transparent;color:var(--ink)}
.button:disabled{opacity:.6;cursor:default}
.hint{font-size:.9rem;color:var(--soft);text-align:center}
.announcement{position:absolute;width:1px;height:1px;overflow:hidden;clip-path:inset(50%);white-space:nowrap}
.plain{max-width:27rem;margin:18vh auto 0;text-align:center;display:grid;gap:.75rem}
@media (prefers-reduced-motion:no-preference){main.changed .count strong{animation:pop .6s ease-out}@keyframes pop{40%{transform:scale(1.18)}}.count strong{display:inline-block}}
@media (min-width:52rem){body{padding-top:3.5rem}.page{max-width:54rem;grid-template-columns:25rem 1fr;gap:1.25rem 2.25rem;align-items:start}.page>.wide{grid-column:1/-1}}
@media print{:root{color-scheme:light;--page:#fff;--ink:#000;--soft:#333;--panel:#fff;--line:#999;--good:#000;--good-ground:transparent}body{padding:0}.buttons,.hint,.offline{display:none!important}.card,.strip,figure,progress{print-color-adjust:exact;-webkit-print-color-adjust:exact;box-shadow:none}.card,.panel{break-inside:avoid}.page{display:block;max-width:11cm}.panel{margin-top:1rem}}
`;
