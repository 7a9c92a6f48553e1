import path from 'node:path';
import { describeExit, launch, readJson, writeJson } from '../../apps/cli/processes.mjs';
import { StartFailure } from '../../apps/cli/start-failure.mjs';

/**
 * Fills a store with a year of a café, beside the service: `npm start -- --demo`. Does it once for each data folder, which
 * its file says.
 */
export async function fillShop({ root, env, localFile, signal, say, onStep }) {
  const local = readJson(localFile);
  if (local?.has_demo) return;
  say('filling a café with a year of stamps …');
  const program = path.join(root, 'dist/apps/cli/demo-shop.js');
  const child = launch(process.execPath, [program], { cwd: root, env, signal, output: say });
  onStep(child);
  const end = await child.result;
  onStep(null);
  signal.throwIfAborted();
  if (end.code !== 0) throw new StartFailure(`The café could not be filled: ${describeExit(end)}.`);
  if (local) writeJson(localFile, { ...local, has_demo: true });
}
