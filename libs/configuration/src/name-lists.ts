import { Setting } from '#kernel/setting-decorators.js';

const NAME = /^\.?[a-z0-9_-]+(\.[a-z0-9_-]+)*$/;

export function NameList(): PropertyDecorator {
  return Setting(parseNames, 'must be names of hosts, separated by commas');
}

function parseNames(text: string): string[] | undefined {
  const names = text.split(',').map((one) => one.trim().toLowerCase());
  return names.every(isListableName) ? names : undefined;
}

/** Tells whether a list may have the text as a name. Four numbers are a mistyped address. */
export function isListableName(text: string): boolean {
  return NAME.test(text) && !/^[\d.]+$/.test(text);
}

/**
 * Tells whether a list as in NO_PROXY has a name. Its entries include the names below them; one that begins with a dot
 * stands for those only.
 * @param names in lower case
 */
export function isListedName(hostname: string, names: readonly string[]): boolean {
  const name = hostname.toLowerCase().replace(/\.$/, '');
  return names.some((one) =>
    one.startsWith('.') ? name.endsWith(one) : name === one || name.endsWith(`.${one}`),
  );
}

/**
 * The push services of Chrome and browsers like it, of Chrome's test versions, Firefox, Safari and Edge, as names in a
 * list like NO_PROXY.
 */
export const PUSH_SERVICES = [
  'fcm.googleapis.com',
  'jmt17.google.com',
  '.push.services.mozilla.com',
  '.push.apple.com',
  '.notify.windows.com',
];
