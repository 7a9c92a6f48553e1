import { readFileSync } from 'node:fs';
import { describeFileError } from '#platform/kernel/file-errors.js';
import { secrets } from '#platform/kernel/setting-decorators.js';
import { trimText } from '#platform/kernel/text.js';
// Declares them.
import './settings.js';

/** Settings that can be read from a file instead, which the same name with `_FILE` at its end names. */
export const SECRET_SETTINGS: readonly string[] = [
  ...secrets,
  // Of apps/cli/event-store-access.ts alone.
  'EVENT_STORE_ADMIN_URL',
];

type Environment = Record<string, string | undefined>;

/** Fills in the contents of those files, and reports the ones that cannot be read. */
export function readSecretFiles(environment: Environment): {
  settings: Environment;
  errors: string[];
} {
  const settings = { ...environment };
  const errors: string[] = [];
  for (const name of SECRET_SETTINGS) {
    const file = environment[`${name}_FILE`];
    if (file === undefined) continue;
    if (environment[name] !== undefined) {
      errors.push(`${name}_FILE: ${name} is set as well; set one of the two`);
      continue;
    }
    try {
      const text = trimText(readFileSync(file, 'utf8'));
      if (text === '') errors.push(`${name}_FILE: ${file} is empty`);
      else settings[name] = text;
    } catch (error) {
      errors.push(
        `${name}_FILE: ${file} cannot be read: ${describeFileError(error) ?? String(error)}`,
      );
    }
  }
  return { settings, errors };
}
