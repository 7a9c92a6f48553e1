import { expect, it } from '@jest/globals';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/**
 * Commands of one stream are decided in groups: what those before have decided is in the state, and not written yet. So
 * `load` must not read the stream (`CommandPlan`). Commands of several streams load under their locks.
 */
it('no command that shares its commit reads the history', () => {
  const grouped = readdirSync('libs', { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.commands.ts'))
    .map((file) => ({ file, text: readFileSync(join('libs', file), 'utf8') }))
    .filter(({ text }) => /\.handleCommand\(|\bhandle(?:Creation|Change)\(/.test(text));
  expect(grouped.length).toBeGreaterThan(10);
  const reading = grouped.filter(({ text }) =>
    /\b(EventStore|PastStates)\b|\.(readStream|readEvents|project)\(/.test(text),
  );
  expect(reading.map(({ file }) => file)).toEqual([]);
});
