import { registerAsset, STYLE } from './assets.js';

const [light = '', dark = ''] = Array.from(
  STYLE.text.matchAll(/:root \{([^}]*)\}/g),
  ([, variables]) => variables,
);

/** Draws the elements once more in the other colour scheme, with the colours of the style of every page. */
export const ELEMENTS_STYLE = registerAsset(
  'elements',
  'css',
  `.schemes,.schemes>*{display:grid;gap:1.5rem;min-width:0;align-content:start}
@media(min-width:60rem){
main:has(.schemes){max-width:96rem}
.schemes{grid-template-columns:1fr 1fr}
}
.schemes>*{padding:1rem;background:var(--page);color:var(--ink)}
.twin{${light}${dark}color-scheme:dark;--brand:var(--accent);--on-brand:var(--on-accent)}
@media(prefers-color-scheme:dark){.twin{${light}color-scheme:light}}
`,
);
