import fs from 'node:fs';
import cruiser from '../../.dependency-cruiser.cjs';

/** Checks that docs/architecture.md shows the ladder of .dependency-cruiser.cjs, or draws it there with `--write`. */
const FILE = new URL('../../docs/architecture.md', import.meta.url);
const PICTURE = /(?<=## Layers\n\n```mermaid\n)[^`]*/;

const ladder = cruiser.forbidden
  .filter(({ name }) => name.startsWith('ladder-'))
  .map(({ from }) => from.path.slice('^libs/'.length, -1).split('/'));
const floors = [...new Set(ladder.map(([floor]) => floor)), 'apps'];
const boxes = floors.map((floor) => {
  const libs = ladder.flatMap(([name, lib]) => (name === floor && lib ? [lib] : []));
  return `  ${floor}["${[floor, ...(libs.length > 0 ? [libs.join(', ')] : [])].join(': ')}"]`;
});
const arrows = floors.slice(1).map((floor, i) => `  ${floor} --> ${floors[i]}`);
const picture = ['flowchart BT', ...boxes, ...arrows, ''].join('\n');

const text = fs.readFileSync(FILE, 'utf8');
const current = text.replace(PICTURE, () => picture);
if (process.argv.includes('--write')) fs.writeFileSync(FILE, current);
else if (text !== current) {
  console.error('docs/architecture.md shows other layers: npm run rules:write');
  process.exitCode = 1;
}
